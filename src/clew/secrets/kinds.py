# ruff: noqa: E501 (a table reads best with one row a line)
"""What secrets look like: one row a kind.

A row has a name, the words of which one must be in the text (in lower case) before the pattern is tried, and the
pattern; where the pattern has a group, the group is the secret, else the whole match is. All repeats are bounded or
possessive, so that no text makes them slow; no group is repeated possessively, which Python before 3.11.5 gets wrong.
"""

import re
from typing import Literal, NamedTuple

Proof = Literal["any", "mixed", "random", "loud", "base64"]  # what a value must look like: see values.py


class Kind(NamedTuple):
    """A kind of secret, and how it is found."""

    name: str
    words: tuple[str, ...]
    pattern: re.Pattern[str]
    proof: Proof | None  # None: the pattern says enough
    begins: bool  # the pattern begins with one of the words, so it is tried only where they stand


_PARTS = {
    "<b>": r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))",  # begins here, be it behind an escaped line end
    "<e>": r"(?![A-Za-z0-9])",
    "<q>": r"(?:\\{0,7}[\"'`])",  # a quote, escaped however often
    "<ws>": r"(?:\s|\\{1,7}[nrt])",
    "<w>": r"[A-Za-z0-9]",
    "<u>": r"[A-Za-z0-9_-]",
    "<64>": r"[A-Za-z0-9+/]",
    "<hex>": r"[0-9a-fA-F]",
    "<uuid>": r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}",
    "<val>": r"[^\s\"'`\\<>]",  # a character of an unquoted value
}


def row(name: str, words: str, pattern: str, proof: Proof | None = None) -> Kind:
    """A kind whose pattern begins with one of its words, which are parted by bars."""
    return _kind(name, words, pattern, proof, begins=True)


def inner(name: str, words: str, pattern: str, proof: Proof | None = None) -> Kind:
    """A kind with one of its words somewhere in its pattern."""
    return _kind(name, words, pattern, proof, begins=False)


def _kind(name: str, words: str, pattern: str, proof: Proof | None, *, begins: bool) -> Kind:
    for short, long in _PARTS.items():
        pattern = pattern.replace(short, long)
    return Kind(name, tuple(words.split("|")), re.compile(pattern), proof, begins)


# Secrets that say themselves what they are.
SHAPES: tuple[Kind, ...] = (
    row("aws access key id", "akia|asia|abia|acca", r"<b>(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}<e>"),
    row("aws session token", "fwogzxivyxdz|fqogzxivyxdz|iqojb3jpz2lu", r"(?:F[wQ]oGZXIvYXdz|IQoJb3JpZ2lu)[A-Za-z0-9+/=%_-]{40,4000}+"),
    row("aws bedrock key", "absk|bedrock-api-key-", r"<b>(?:ABSK<64>{60,}+={0,2}|bedrock-api-key-[A-Za-z0-9+/=]{20,}+)"),
    row("alibaba access key id", "ltai", r"<b>LTAI<w>{16,20}<e>"),
    row("tencent secret id", "akid", r"<b>AKID<w>{32}<e>"),
    row("github token", "ghp_|gho_|ghu_|ghs_|ghr_|github_pat_", r"gh[pousr]_<w>{30,255}|github_pat_[A-Za-z0-9_]{22,255}"),
    row("gitlab token", "glpat-|gldt-|glrt-|glrtr-|glcbt-|glptt-|glft-|glimt-|glagent-|gloas-|glsoat-|glffct-|glwt-|gr1348941", r"<b>(?:gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|oas|soat|ffct|wt|rtr)-<u>{16,300}(?:\.<u>{2,40}){0,2}|GR1348941<u>{20,60})"),
    row("gitlab session", "_gitlab_session", r"_gitlab_session=(<w>{16,64})"),
    row("bitbucket token", "atbb|atctt3", r"<b>(?:ATBB<w>{20,60}|ATCTT3<u>{40,400}=?<w>{0,8})"),
    row("anthropic key", "sk-ant-", r"<b>sk-ant-<u>{16,300}"),
    row("openrouter key", "sk-or-", r"<b>sk-or-<u>{20,200}"),
    row("langfuse key", "sk-lf-", r"<b>sk-lf-<uuid>"),
    row("openai key", "sk-", r"<b>sk-(?!ant-|or-|lf-)(?=<u>{0,60}\d)(?:(?:proj|svcacct|admin|None|service)-)?<u>{20,300}"),
    row("groq key", "gsk_", r"<b>gsk_<w>{40,80}"),
    row("xai key", "xai-", r"<b>xai-<w>{40,120}"),
    row("perplexity key", "pplx-", r"<b>pplx-<w>{32,80}"),
    row("cerebras key", "csk-", r"<b>csk-<w>{32,80}"),
    row("fireworks key", "fw_", r"<b>fw_(?=<w>{0,20}\d)<w>{20,60}<e>"),
    row("nvidia key", "nvapi-", r"<b>nvapi-<u>{40,100}"),
    row("langsmith key", "lsv2_", r"<b>lsv2_(?:pt|sk)_<hex>{32}_<hex>{8,12}"),
    row("pinecone key", "pcsk_", r"<b>pcsk_<w>{4,8}_<w>{40,80}"),
    row("tavily key", "tvly-", r"<b>tvly-<u>{20,60}"),
    row("e2b key", "e2b_", r"<b>e2b_<hex>{40}"),
    row("firecrawl key", "fc-", r"<b>fc-<hex>{32}<e>"),
    row("jina key", "jina_", r"<b>jina_<u>{40,80}"),
    row("voyage key", "pa-", r"<b>pa-(?=<u>{0,20}\d)<u>{43}<e>"),
    row("elevenlabs key", "sk_", r"<b>sk_<hex>{48}<e>"),
    row("hugging face token", "hf_|api_org_", r"<b>(?:hf_|api_org_)(?=[a-z]{0,33}[A-Z0-9])<w>{30,40}<e>"),
    row("replicate token", "r8_", r"<b>r8_<w>{30,50}<e>"),
    row("google api key", "aiza", r"<b>AIza<u>{35}"),
    row("google api key", "aq.ab8", r"<b>AQ\.Ab8<u>{30,100}"),
    row("google oauth secret", "gocspx-", r"GOCSPX-<u>{20,60}"),
    row("google oauth token", "ya29.", r"<b>ya29\.[A-Za-z0-9._-]{20,1000}"),
    row("google refresh token", "1//", r"<b>1//0<u>{30,200}"),
    inner("azure client secret", "q~", r"(?<![\w~])[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.-]{31,34}(?![\w~])"),
    inner("azure storage key", "==", r"(?<![A-Za-z0-9+/])<64>{76}(?:\+ASt|AQA|ACD|AzC)<64>{4,7}==", "random"),
    row("slack token", "xox|xapp-", r"<b>(?:xox[abcdeprs](?:\.xox[bp])?-(?=[A-Za-z0-9%-]{0,24}\d)[A-Za-z0-9%_-]{10,400}|xoxo-\d[0-9a-f-]{20,100}|xapp-\d-<u>{10,200})"),
    row("slack webhook", "hooks.slack.com", r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9+/_-]{20,120})"),
    row("discord webhook", "discord.com/api/|discordapp.com/api/", r"discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/(\d{15,22}/<u>{40,100})"),
    row("teams webhook", "webhook.office.com", r"webhook\.office\.com/webhookb2/([A-Za-z0-9@/-]{60,300})"),
    row("webhook", "hooks.zapier.com|webhook.site", r"(?:hooks\.zapier\.com/hooks/catch|webhook\.site)/([A-Za-z0-9/-]{10,80})"),
    inner("discord token", ".", r"[MNO](?<![A-Za-z0-9_.-].)<u>{22,27}\.<u>{6}\.<u>{27,45}(?!<u>)", "random"),
    inner("telegram token", ":aa", r"(?<![\d:])\d{8,10}:AA<u>{32,34}(?!<u>)"),
    row("stripe key", "sk_|rk_", r"<b>[sr]k_(?:live|test|prod)_<w>{10,250}"),
    row("signing secret", "whsec_", r"<b>whsec_[A-Za-z0-9+/=]{20,100}"),
    row("razorpay key", "rzp_", r"<b>rzp_(?:live|test)_<w>{14,40}"),
    row("twilio key", "sk", r"<b>SK[0-9a-f]{32}<e>"),
    row("twilio auth token", "ac", r"<b>AC[0-9a-f]{32}(?![0-9a-f])[^0-9a-zA-Z]{1,12}(?:[a-zA-Z_]{0,24}[^0-9a-zA-Z]{1,6})?([0-9a-f]{32})<e>"),
    row("sendgrid key", "sg.", r"<b>SG\.<u>{16,32}\.<u>{16,64}"),
    row("mailgun key", "key-", r"<b>key-[0-9a-f]{32}<e>"),
    inner("mailgun signing key", "-", r"[0-9a-f](?<![A-Za-z0-9].)[0-9a-f]{31}-[0-9a-f]{8}-[0-9a-f]{8}<e>"),
    inner("mailchimp key", "-us", r"[0-9a-f](?<![A-Za-z0-9].)[0-9a-f]{31}-us\d{1,2}<e>"),
    row("brevo key", "xkeysib-|xsmtpsib-", r"<b>x(?:key|smtp)sib-[0-9a-f]{64}-<w>{16}"),
    row("resend key", "re_", r"<b>re_<w>{8}_<w>{20,30}<e>"),
    row("npm token", "npm_", r"<b>npm_<w>{30,60}<e>"),
    row("pypi token", "pypi-", r"<b>pypi-Ag<u>{30,1000}"),
    row("rubygems key", "rubygems_", r"<b>rubygems_[0-9a-f]{40,64}"),
    row("crates.io token", "cio", r"<b>cio<w>{32}<e>", "random"),
    row("nuget key", "oy2", r"<b>oy2[a-z0-9]{43}<e>"),
    row("clojars token", "clojars_", r"(?i:clojars_)[0-9a-fA-F]{60}"),
    row("docker token", "dckr_", r"<b>dckr_(?:pat|oat)_<u>{20,80}"),
    row("digitalocean token", "dop_v1_|doo_v1_|dor_v1_", r"<b>do[opr]_v1_[0-9a-f]{40,80}"),
    row("heroku key", "hrku-", r"<b>HRKU-<u>{30,80}"),
    row("cloudflare origin key", "v1.0-", r"<b>v1\.0-[0-9a-f]{24}-[0-9a-f]{100,160}"),
    row("cloudflare token", "cfut_|cfat_|cfk_", r"<b>cf(?:ut|at|k)_<w>{30,60}"),
    row("vercel token", "vcp_|vci_|vca_|vcr_|vck_", r"<b>vc[piark]_<w>{24,80}"),
    row("netlify token", "nfp_|nfc_|nfo_|nfb_|nfu_", r"<b>nf[pcobu]_<w>{30,60}"),
    row("fly.io token", "fo1_|fm1a_|fm1r_|fm2_", r"<b>(?:fo1_<u>{30,80}|fm(?:1[ar]|2)_[A-Za-z0-9+/=_,-]{40,4000})"),
    row("render key", "rnd_", r"<b>rnd_<w>{20,60}<e>"),
    row("railway token", "rwy_", r"<b>rwy_<u>{20,80}"),
    row("supabase key", "sbp_|sb_secret_", r"<b>(?:sbp_(?:oauth_|v0_)?[0-9a-f]{40}|sb_secret_<u>{20,60})"),
    row("neon key", "napi_|npg_", r"<b>(?:napi_<w>{40,80}|npg_<w>{10,40})<e>"),
    row("planetscale token", "pscale_", r"<b>pscale_(?:tkn|oauth|pw)_[A-Za-z0-9_.=-]{20,80}"),
    row("mongodb atlas secret", "mdb_sa_sk_", r"<b>mdb_sa_sk_<u>{30,60}"),
    row("databricks token", "dapi", r"<b>dapi[0-9a-f]{32}(?:-\d)?<e>"),
    row("new relic key", "nrak-|nrii-|nrjs-|nrra-|nriq-|nrsp-", r"<b>NR(?:AK|II|JS|RA|IQ|SP)-[A-Za-z0-9_-]{19,40}"),
    inner("new relic key", "nral", r"(?<![0-9a-f])<hex>{36}NRAL<e>"),
    row("dynatrace token", "dt0", r"<b>dt0[a-z]\d\d\.[A-Z0-9]{8,24}\.[A-Z0-9]{64}"),
    row("sentry token", "sntrys_|sntryu_", r"<b>sntry[su]_[A-Za-z0-9+/=_-]{40,400}"),
    row("grafana token", "glsa_|glc_|eyjrijoi", r"<b>(?:glsa_<w>{32}_<hex>{8}|glc_[A-Za-z0-9+/=]{32,400}|eyJrIjoi<64>{60,400}={0,2})"),
    row("posthog key", "phx_", r"<b>phx_<w>{30,60}"),
    row("linear key", "lin_api_|lin_oauth_", r"<b>lin_(?:api|oauth)_<w>{30,80}"),
    row("notion token", "secret_|ntn_", r"<b>(?:secret_<w>{43}|ntn_<w>{40,60})<e>"),
    row("figma token", "figd_|figo_|figor_|figu_|figur_", r"<b>fig(?:d|o|or|u|ur)_<u>{30,80}"),
    row("airtable token", "pat", r"<b>pat<w>{14}\.[0-9a-f]{64}"),
    row("hubspot token", "pat-", r"<b>pat-(?:na|eu|ap)\d-<uuid>"),
    row("harness key", "pat.|sat.", r"<b>[ps]at\.<u>{22}\.<w>{24}\.<w>{20}"),
    row("atlassian token", "atatt3|atoa", r"<b>(?:ATATT3|ATOA)<u>{30,400}=?<hex>{0,8}"),
    row("trello token", "atta", r"<b>ATTA[0-9a-f]{60,80}"),
    row("asana token", "1/|2/", r"<b>[12]/\d{13,18}(?:/\d{13,18})?:[0-9a-f]{32}<e>"),
    row("clickup token", "pk_", r"<b>pk_\d{5,10}_[A-Z0-9]{32}<e>"),
    row("shopify token", "shpat_|shpca_|shppa_|shpss_|shpua_|shpit_", r"<b>shp(?:at|ca|pa|ss|ua|it)_<hex>{32}"),
    row("square token", "eaaa|sq0", r"(?<![A-Za-z0-9+/_-])(?:EAAA<u>{60}(?!<u>)|sq0[a-z]{3}-<u>{22,60})"),
    row("facebook token", "eaa", r"(?<![A-Za-z0-9+/_-])EAA[A-Z]<w>{80,400}(?![+/=])", "random"),
    inner("facebook token", "facebook", r"(?<!\d)\d{15,16}\|<u>{27,40}(?!<u>)", "random"),
    row("intra token", "s-s4t2", r"<b>s-s4t2(?:ud|af)-[0-9a-f]{64}"),
    row("braintree token", "access_token$", r"access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}"),
    row("plaid token", "access-", r"<b>access-(?:sandbox|development|production)-<uuid>"),
    row("easypost key", "ezak|eztk", r"<b>EZ[AT]K<w>{54}"),
    row("shippo key", "shippo_", r"<b>shippo_(?:live|test)_<hex>{40}"),
    row("duffel key", "duffel_", r"<b>duffel_(?:live|test)_<u>{40,50}"),
    row("flutterwave key", "flwseck", r"FLWSECK(?:_TEST)?-<w>{12,40}(?:-X)?"),
    row("vault token", "hvs.|hvb.|hvr.", r"<b>hv[sbr]\.<u>{20,400}"),
    row("vault token", "s.", r"(?<![\w.-])s\.(?=<w>{0,23}\d)(?=<w>{0,23}[A-Z])<w>{24}(?![\w.(-])", "random"),
    inner("terraform token", ".atlasv1.", r"<w>{14}\.atlasv1\.<u>{40,80}"),
    row("doppler token", "dp.pt.|dp.ct.|dp.st.|dp.sa.|dp.scim.|dp.audit.|dp.said.", r"<b>dp\.(?:pt|ct|st|sa|scim|audit|said)\.(?:<u>{2,40}\.)?<w>{36,48}"),
    row("1password token", "ops_|a3-", r"<b>ops_eyJ<64>{40,2000}={0,2}|<b>A3-[A-Z0-9]{6}-(?:[A-Z0-9]{5,6}-){3,5}[A-Z0-9]{5,6}<e>"),
    row("pulumi token", "pul-", r"<b>pul-[0-9a-f]{40}"),
    row("infisical token", "st.", r"<b>st\.<hex>{8}-<hex>{4}-<hex>{4}-<hex>{4}-<hex>{12}\.<hex>{32,}+(?:\.<hex>{32,}+)?"),
    row("tailscale key", "tskey-", r"<b>tskey-(?:[a-z]{2,12}-)?<u>{16,80}"),
    row("age key", "age-secret-key-", r"AGE-SECRET-KEY-(?:PQ-)?1[A-Z0-9]{50,120}"),
    row("circleci token", "ccipat_|ccipri_", r"<b>CCIP(?:AT|RI)_<w>{10,30}_<hex>{40}"),
    row("buildkite token", "bkua_|bkat_|bkct_|bkpt_|bkpi_", r"<b>bk[a-z]{2}_<w>{30,60}"),
    row("sonar token", "squ_|sqp_|sqa_", r"<b>sq[upa]_[0-9a-f]{40}"),
    row("sourcegraph token", "sgp_", r"<b>sgp_(?:(?:<hex>{16}|local)_)?<hex>{40}"),
    row("jfrog key", "akcp|cmvmd", r"<b>(?:AKCp<w>{60,80}|cmVmd<w>{59})<e>"),
    row("postman key", "pmak-", r"<b>PMAK-<hex>{24}-<hex>{34}"),
    row("contentful token", "cfpat-", r"<b>CFPAT-<u>{40,60}"),
    row("dropbox token", "sl.", r"<b>sl\.(?:u\.)?<u>{100,1400}"),
    row("typeform token", "tfp_", r"<b>tfp_[A-Za-z0-9_.=-]{40,70}"),
    row("prefect key", "pnu_|pnb_", r"<b>pn[ub]_<w>{36}"),
    row("readme key", "rdme_", r"<b>rdme_[a-z0-9]{60,80}"),
    row("octopus key", "api-", r"(?<![/\w])API-[A-Z0-9]{26,32}<e>", "random"),
    row("launchdarkly key", "sdk-|api-|mob-", r"<b>(?:sdk|api|mob)-<uuid>"),
    row("openshift token", "sha256~", r"sha256~<u>{43}"),
    row("yandex key", "aqvn|t1.", r"<b>(?:AQVN<u>{35,40}|t1\.[A-Z0-9a-z_-]{20,400}={0,2}\.<u>{86}={0,2})"),
    row("adobe secret", "p8e-", r"<b>p8e-<u>{32}<e>"),
    inner("maxmind key", "_mmk", r"<b><w>{6}_<w>{29}_mmk"),
    row("twitter bearer", "aaaaaaaaaaaaaaaaaaaaa", r"<b>A{20,24}<w>(?:<w>|%[0-9A-F]{2}){60,120}(?![A-Za-z0-9+/])", "random"),
    row("linode token", "lin0de_", r"<b>lin0de_<w>{40,80}"),
    row("jwt", "eyj", r"<b>eyJ<u>{8,4000}+\.<u>{8,8000}+(?:\.<u>{0,2000}+){1,3}"),
    row("password hash", "$2|$1$|$5$|$6$|$7$|$y$|$gy$|$apr1$|$argon2|$scrypt$|$sha1$|$md5$", r"\$(?:2[abxy]\$\d\d\$[./A-Za-z0-9]{53}|(?:1|5|6|7|y|gy|apr1|argon2(?:id|i|d)|scrypt|sha1|md5)\$[^\s:\"'\\]{16,300})"),
    row("password hash", "pbkdf2|bcrypt_sha", r"(?:pbkdf2[_-]?sha\d{1,3}\$\d{1,8}\$[^\s\"'\\]{16,200}|bcrypt_sha256\$[^\s\"'\\]{30,120})"),
)  # fmt: skip

_PEM = r"-----{} [A-Z0-9 ]{{0,40}}PRIVATE KEY(?: BLOCK)?-----"

# Secrets that only their place gives away; the group is the secret.
PLACES: tuple[Kind, ...] = (
    inner("private key", "private key", _PEM.format("BEGIN") + r"(?:[^-]|-(?!----)){0,20000}" + _PEM.format("END")),
    # A key that was cut off at either end.
    inner("private key", "private key", _PEM.format("BEGIN") + r"(?:<ws>|[\"',+|])*(?:<64>{16,100}+={0,2}(?:<ws>|[\"',+|])*){1,400}"),
    inner("private key", "private key", r"(?<![A-Za-z0-9+/=])(?:<64>{16,100}+={0,2}<ws>{1,20}){1,60}={0,2}" + _PEM.format("END")),
    row("password hash", "{ss|{sha", r"\{(?i:s?sha)\d{0,3}\}(<64>{20,200}={0,2})"),
    row("putty key", "private-lines:", r"Private-Lines:\s{0,3}\d{1,4}((?:<ws>{1,9}<64>{4,64}={0,2}){1,99})"),
    row("putty key", "private-mac", r"Private-MAC:\s{0,3}(<hex>{32,64})"),
    row("aws secret access key", "akia|asia", r"(?:AKIA|ASIA)[A-Z0-9]{16}[^A-Za-z0-9+/]{1,12}(<64>{40})(?![A-Za-z0-9+/=])"),
    row("aws secret access key", "secret", r"(?i:secret[ _-]?(?:access)?[ _-]?key)[^\n]{0,24}?(?<![A-Za-z0-9+/])(<64>{40})(?![A-Za-z0-9+/=])", "random"),
    row("authorization", "authorization", r"(?i:authorization)<q>?\]?\s{0,3}[:=,]\s{0,3}<q>?(?i:bearer|basic|token|apikey|api-key|bot|key|negotiate|splunk|genie-?key|sso-key|digest|jwt)(?:\s{1,3}|\s{0,2}[:=]\s{0,2})(?:token=)?<q>?([A-Za-z0-9._~+/=:%|-]{6,4000})", "any"),
    row("authorization", "authorization", r"(?i:authorization)<q>?\]?\s{0,3}[:=,]\s{0,3}<q>?(?:[A-Za-z][\w-]{2,24}\s{1,3})?([A-Za-z0-9._~+/=:%|-]{12,4000})", "random"),
    row("bearer token", "bearer", r"<b>(?i:bearer)(?:\s{1,3}|%20|\+)([A-Za-z0-9._~+/=-]{12,4000})", "random"),
    row("basic credentials", "basic ", r"<b>(?i:basic) ([A-Za-z0-9+/]{8,400}={0,2})", "base64"),
    row("signature", "signature=", r"(?i:signature)=(<hex>{40,512})<e>"),
    row("signature", "sig=|signature=|hmac=", r"(?:(?<=[?&#;-])|(?<=\\u0026))(?i:sig|signature|hmac)=([A-Za-z0-9%+/=_~-]{20,600})", "random"),
    row("oauth code", "code=", r"(?:(?<=[?&#;])|(?<=\\u0026))code=([A-Za-z0-9%+/=_~.-]{20,400})", "random"),
    row("cookie", "set-cookie", r"(?i:set-cookie)2?<q>?\s{0,3}[:=,]\s{0,3}<q>?[\w.!#$%&*+^|~-]{1,80}=([^\s;\"'\\,]{6,4000})", "any"),
    row("cookie", "cookie", r"(?<!-)(?<![A-Za-z])(?i:cookie)<q>?\s{0,3}[:=]\s{0,3}<q>?([\w.!#$%&*+^|~-]{1,80}=[^\s\"'\\][^\r\n\"'\\]{5,8000})", "any"),
    row("cookie", "-b |--cookie", r"(?<=\s)(?:-b|--cookie)[ =]<q>?([\w.-]{1,80}=[^\r\n\"'\\]{6,4000})", "any"),
    row("password in a url", "://", r"(?<=[A-Za-z0-9])://[^\s:/@\"'<>`\\|?#]{0,200}:([^\s/\"'<>`\\]{1,300})@(?=[A-Za-z0-9\[])", "any"),
    row("password in a url", "://", r"(?<=[A-Za-z0-9])://[^\s:/@\"'<>`\\|?#]{0,200}:([^\s@\"'<>`\\?#]{1,300})@(?=[A-Za-z0-9.-]{1,200}(?::\d{1,5})?[/\s\"'])", "mixed"),
    row("token in a url", "://", r"(?<=[A-Za-z0-9])://([A-Za-z0-9_.%-]{16,400})(?::x-oauth-basic|:)?@(?=[A-Za-z0-9\[])", "random"),
    row("password of curl", "-u|--user|--proxy-user|--auth", r"(?<=[\s\"'])(?:-u|--user|--proxy-user|--auth)(?:[ =]{1,3}|<q>,\s?)?<q>?(?P<user>[^\s:\"'\\/]{0,200})<q>?:<q>?(?!(?P=user)<e>|\d{1,9}<e>|/)([^\s\"'\\<>]{3,300})", "any"),
    row("password of curl", "-u|--user", r"(?<=\s)(?:-u|--user)[ =]{0,3}<q>?([^\s:\"'\\]{8,200}):(?=<q>|\s|$)", "random"),
    row("password on a command line", "sshpass", r"sshpass\s{1,3}-p\s{0,3}<q>?([^\s\"'\\]{2,200})", "any"),
    row("password on a command line", "mysql|mariadb", r"(?:mysql|mariadb)(?:dump|admin|import|check)?\b[^\n|;]{0,150}?\s-p<q>?([^\s\"'\\]{2,200})", "any"),
    row("password on a command line", "redis-cli", r"redis-cli\b[^\n|;]{0,150}?\s-a\s{1,3}<q>?([^\s\"'\\]{2,200})", "any"),
    row("password on a command line", "login|mongo|ldap|zip|sqlcmd|bcp", r"<b>(?:login|mongo(?:sh|dump|restore|export|import)?|ldap(?:search|modify|add|passwd|whoami)|zip|sqlcmd|bcp)\b[^\n|;]{0,150}?\s(?:-p|-P|-w)\s{1,3}<q>?([^\s\"'\\]{4,200})", "any"),
    row("password on a command line", "7z|unrar|rar", r"<b>(?:7za?|unrar|rar)\s[^\n|;]{0,150}?\s-p<q>?([^\s\"'\\]{3,200})", "any"),
    row("password on a command line", "htpasswd", r"htpasswd\s{1,3}-\w{0,4}b\w{0,4}\s[^\n|;]{1,150}?\s<q>?([^\s\"'\\]{3,200})<q>?(?=\s|$)", "any"),
    row("password on a command line", "echo|printf", r"<b>(?:echo|printf)\s{1,3}(?:-\w{1,3}\s)?<q>?[^\s:\"'\\]{1,60}:([^\s\"'\\]{3,200})<q>?\s{0,3}\|\s{0,3}(?:sudo\s)?chpasswd", "any"),
    row("password on a command line", "echo|printf", r"<b>(?:echo|printf)\s{1,3}(?:-\w{1,3}\s)?<q>?([^\s\"'\\]{4,300})<q>?\s{0,3}\|\s{0,3}(?:[^\n|]{0,100}(?:-stdin|with-token)|sudo\s[^\n|]{0,20}-S)", "any"),
    row("password on a command line", "-pass", r"-pass(?:in|out)?\s{1,3}<q>?pass:([^\s\"'\\]{3,200})", "any"),
    row("password on a command line", "smbclient|rpcclient|smbmap", r"(?:smbclient|rpcclient|smbmap)\b[^\n]{0,150}?\s-U\s{0,2}<q>?[^\s%\"'\\]{1,60}%([^\s\"'\\]{3,200})", "any"),
    row("password on a command line", "xfreerdp|wfreerdp", r"[xw]freerdp\b[^\n]{0,150}?\s/p:<q>?([^\s\"'\\]{3,200})", "any"),
    row("password on a command line", "net use", r"(?i:net use)\s[^\n]{0,150}?\s/user:\S{1,80}\s{1,3}<q>?([^\s\"'\\/]{3,200})", "any"),
    row("password on a command line", "requirepass|masterauth", r"(?:requirepass|masterauth)\s{1,3}<q>?([^\s\"'\\]{3,200})", "any"),
    row("token on a command line", "vault login|snyk auth|<<<", r"(?:vault login|snyk auth|<<<)\s{0,3}(?:token=)?<q>?([^\s\"'\\]{12,300})", "random"),
    row("password in code", "auth", r"(?i:auth)\s{0,2}=?\s{0,2}\(\s{0,3}<q>[^\s\"'\\,]{1,100}<q>\s{0,2},\s{0,3}<q>([^\s\"'\\]{3,200})<q>", "any"),
    row("signing key in code", "jwt.", r"jwt\.(?:sign|verify|encode|decode)\([^\"'\n]{1,80},\s{0,3}<q>([^\s\"'\\]{6,200})<q>", "mixed"),
    row("saml message", "samlresponse=|samlrequest=", r"(?i:saml(?:response|request))=([A-Za-z0-9+/=%]{40,20000})"),
    row("password in sql", "identified", r"(?i:identified\s{1,3}(?:with\s{1,3}\S{1,40}\s{1,3})?by)\s{1,3}(?:(?i:password)\s{1,3})?\\{0,7}[\"']([^\s\"'\\]{3,200})", "any"),
    row("password in sql", "password", r"(?i:password)\s{1,3}<q>([^\s\"'`\\]{4,200})<q>\s{0,3}(?:;|$|(?i:valid|createdb|login|in role|superuser))", "any"),
    row("password of netrc", "login", r"<b>login<ws>{1,9}[^\s\\]{1,100}<ws>{1,9}(?:account<ws>{1,9}[^\s\\]{1,100}<ws>{1,9})?password<ws>{1,9}([^\s\"'\\]{1,300})", "any"),
    inner("password of pgpass", ":", r"(?<![^\s\"'\\])[\w.*-]{1,100}:(?:\d{4,5}|\*):[\w.*-]{1,60}:[\w.*-]{1,60}:([^\s:\"'\\]{4,200})(?![^\s\"'\\])", "any"),
    inner("kubernetes secret", r'kind: secret|"kind": "secret"|"kind":"secret"|kind\": \"secret|kind\":\"secret|kind\\\": \\\"secret', r"(?<![\w.-])<q>?[\w.-]{1,100}<q>?:[ \t]{0,3}<q>?([A-Za-z0-9+/]{8,4000}+={0,2})(?=<q>|[\s,}\\]|$)", "base64"),
    row("cohere key", "cohere.", r"(?i:cohere)\.(?:Async)?Client(?:V2)?\((?:api_key=)?<q>(<w>{40})<q>"),
    row("one-time password secret", "otpauth:", r"otpauth(?:-migration)?://[^\s\"'\\]{0,300}?[?&](?:secret|data)=([A-Za-z0-9%+/=]{8,600})"),
    row("setting", "--from-literal|config:set|secrets set", r"(?:--from-literal[ =]<q>?|config:set |secrets set (?:-\w \S{1,40} )?)[\w.-]{1,80}=<q>?([^\s\"'\\]{8,500})", "random"),
)  # fmt: skip
