"""How many tokens a request has, where a client asks for nothing else."""

from clew.testing.provider.answers import ProviderBody


def counted(body: ProviderBody) -> ProviderBody:
    """The request that is counted: of Gemini it may stand inside, and then it names its model itself."""
    inside = body.get("generateContentRequest") or body.get("generate_content_request")
    return inside if isinstance(inside, dict) else body
