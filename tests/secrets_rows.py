# ruff: noqa: E501 (a row a line)
"""Made-up secrets of every kind and text around them; put together at run time, so that no scanner takes this file for a leak."""

from typing import NamedTuple

LOW, UP, HEX = "k3v9x2m7q8w1z5r4t6b0", "K3V9X2M7Q8W1Z5R4T6B7", "4f1c09be27d8a36510fe"
MIX = "aK3v9Xm2Q7w8Z1r5T4b6"


class Row(NamedTuple):
    """A kind, a secret of it, and texts with {} in its place."""

    kind: str
    secret: str
    around: tuple[str, ...] = (
        "use {} now",
        "A_NAME={}\nB=1",
        'client = Client("{}")',
        "GET /v1?x={}&y=2",
        "  - value: '{}'",
        "log: sent {}, ok",
    )


def cut(text: str, n: int) -> str:
    """The first `n` characters of an endless repetition."""
    return (text * (n // len(text) + 1))[:n]


UUID = "4f1c09be-27d8-4365-90fe-0b1c2d3e4f5a"
BODY = cut("MIIEvQIBADANBgkqhkiG9w0BAQEFAASC" + MIX, 64)


def pem(what: str, line: str = "\n") -> str:
    """A private key in PEM form."""
    return line.join([f"-----BEGIN {what}-----", BODY, BODY[::-1], BODY[:30] + "==", f"-----END {what}-----"])


SHAPED = (
    Row("aws access key id", "AKIA" + cut(UP, 16)),
    Row("aws access key id", "ASIA" + cut(UP, 16)),
    Row("aws session token", "IQoJb3JpZ2lu" + cut(MIX, 200) + "=="),
    Row("aws bedrock key", "ABSK" + cut(MIX, 120) + "="),
    Row("alibaba access key id", "LTAI" + cut(MIX, 20)),
    Row("github token", "ghp_" + cut(MIX, 36)),
    Row("github token", "gho_" + cut(MIX, 36)),
    Row("github token", "ghu_" + cut(MIX, 36)),
    Row("github token", "ghs_" + cut(MIX, 36)),
    Row("github token", "ghr_" + cut(MIX, 76)),
    Row("github token", "github_" + "pat_" + cut(MIX, 22) + "_" + cut(MIX, 59)),
    Row("gitlab token", "glpat-" + cut(MIX, 20)),
    Row("gitlab token", "glpat-" + cut(MIX, 27) + ".01." + cut(LOW, 9)),
    Row("gitlab token", "gldt-" + cut(MIX, 20)),
    Row("gitlab token", "glrt-" + cut(MIX, 20)),
    Row("gitlab token", "glcbt-64_" + cut(MIX, 20)),
    Row("gitlab token", "glptt-" + cut(HEX, 40)),
    Row("anthropic key", "sk-ant-" + "api03-" + cut(MIX, 93) + "AA"),
    Row("openrouter key", "sk-or-" + "v1-" + cut(HEX, 64)),
    Row("openai key", "sk-" + cut(MIX, 48)),
    Row("openai key", "sk-proj-" + cut(MIX, 74) + "T3Blbk" + "FJ" + cut(MIX, 74)),
    Row("openai key", "sk-svcacct-" + cut(MIX, 60)),
    Row("openai key", "sk-admin-" + cut(MIX, 60)),
    Row("langfuse key", "sk-lf-" + UUID),
    Row("groq key", "gsk_" + cut(MIX, 52)),
    Row("xai key", "xai-" + cut(MIX, 80)),
    Row("perplexity key", "pplx-" + cut(MIX, 48)),
    Row("fireworks key", "fw_" + cut(MIX, 24)),
    Row("nvidia key", "nvapi-" + cut(MIX, 64)),
    Row("langsmith key", "lsv2_" + "pt_" + cut(HEX, 32) + "_" + cut(HEX, 10)),
    Row("pinecone key", "pcsk_" + cut(MIX, 6) + "_" + cut(MIX, 63)),
    Row("tavily key", "tvly-" + cut(MIX, 32)),
    Row("hugging face token", "hf_" + cut(MIX, 34)),
    Row("replicate token", "r8_" + cut(MIX, 37)),
    Row("google api key", "AIza" + cut(MIX, 35)),
    Row("google oauth secret", "GOCSPX-" + cut(MIX, 28)),
    Row("google oauth token", "ya29." + cut(MIX, 120)),
    Row("google refresh token", "1//" + "0g" + cut(MIX, 60)),
    Row("azure client secret", "aB3" + "8Q~" + cut(MIX, 34)),
    Row("azure storage key", cut(MIX, 76) + "+ASt" + cut(MIX, 6) + "=="),
    Row("slack token", "xoxb-" + "123456789012-1234567890123-" + cut(MIX, 24)),
    Row("slack token", "xoxp-" + "123456789012-123456789012-123456789012-" + cut(HEX, 32)),
    Row("slack token", "xapp-" + "1-A0123456789-1234567890123-" + cut(HEX, 64)),
    Row("slack token", "xoxe." + "xoxp-1-" + cut(MIX, 160)),
    Row("slack webhook", "T01234567/B01234567/" + cut(MIX, 24), ("https://hooks.slack.com/services/{}",)),
    Row("discord webhook", "123456789012345678/" + cut(MIX, 68), ("https://discord.com/api/webhooks/{}",)),
    Row("discord token", "MT" + cut(MIX, 22) + ".G" + cut(MIX, 5) + "." + cut(MIX, 38)),
    Row("telegram token", "1234567890:" + "AA" + cut(MIX, 33)),
    Row("stripe key", "sk_" + "live_" + cut(MIX, 24)),
    Row("stripe key", "rk_" + "live_" + cut(MIX, 99)),
    Row("stripe key", "sk_" + "test_" + cut(MIX, 24)),
    Row("signing secret", "whsec_" + cut(MIX, 32)),
    Row("twilio key", "SK" + cut(HEX, 32)),
    Row("sendgrid key", "SG." + cut(MIX, 22) + "." + cut(MIX, 43)),
    Row("mailgun key", "key-" + cut(HEX, 32)),
    Row("mailchimp key", cut(HEX, 32) + "-us12"),
    Row("brevo key", "xkeysib-" + cut(HEX, 64) + "-" + cut(MIX, 16)),
    Row("resend key", "re_" + cut(MIX, 8) + "_" + cut(MIX, 24)),
    Row("npm token", "npm_" + cut(MIX, 36)),
    Row("pypi token", "pypi-" + "AgEIcHlwaS5vcmc" + cut(MIX, 150)),
    Row("rubygems key", "rubygems_" + cut(HEX, 48)),
    Row("crates.io token", "cio" + cut(MIX, 32)),
    Row("nuget key", "oy2" + cut(LOW, 43)),
    Row("docker token", "dckr_" + "pat_" + cut(MIX, 27)),
    Row("digitalocean token", "dop_" + "v1_" + cut(HEX, 64)),
    Row("heroku key", "HRKU-" + "AA" + cut(MIX, 58)),
    Row("netlify token", "nfp_" + cut(MIX, 36)),
    Row("fly.io token", "fo1_" + cut(MIX, 43)),
    Row("fly.io token", "fm2_" + cut(MIX, 120) + "=="),
    Row("render key", "rnd_" + cut(MIX, 28)),
    Row("supabase key", "sbp_" + cut(HEX, 40)),
    Row("supabase key", "sb_secret_" + cut(MIX, 31)),
    Row("planetscale token", "pscale_" + "tkn_" + cut(MIX, 43)),
    Row("databricks token", "dapi" + cut(HEX, 32)),
    Row("new relic key", "NRAK-" + cut(UP, 27)),
    Row("sentry token", "sntrys_" + "eyJpYXQiO" + cut(MIX, 100) + "=_" + cut(MIX, 43)),
    Row("sentry token", "sntryu_" + cut(HEX, 64)),
    Row("grafana token", "glsa_" + cut(MIX, 32) + "_" + cut(HEX, 8)),
    Row("grafana token", "glc_" + cut(MIX, 120) + "="),
    Row("linear key", "lin_" + "api_" + cut(MIX, 40)),
    Row("notion token", "secret_" + cut(MIX, 43)),
    Row("notion token", "ntn_" + "12345678901" + cut(MIX, 35)),
    Row("figma token", "figd_" + cut(MIX, 40)),
    Row("airtable token", "pat" + cut(MIX, 14) + "." + cut(HEX, 64)),
    Row("atlassian token", "ATATT3" + cut(MIX, 180) + "=" + cut(HEX, 8).upper()),
    Row("shopify token", "shpat_" + cut(HEX, 32)),
    Row("square token", "EAAA" + cut(MIX, 60)),
    Row("square token", "sq0" + "atp-" + cut(MIX, 22)),
    Row("vault token", "hvs." + cut(MIX, 95)),
    Row("vault token", "hvb." + cut(MIX, 140)),
    Row("vault token", "s." + cut(MIX, 24)),
    Row("terraform token", cut(MIX, 14) + ".atlas" + "v1." + cut(MIX, 67)),
    Row("doppler token", "dp.pt." + cut(MIX, 43)),
    Row("1password token", "ops_" + "eyJ" + cut(MIX, 300)),
    Row("pulumi token", "pul-" + cut(HEX, 40)),
    Row("tailscale key", "tskey-" + "auth-" + cut(MIX, 12) + "-" + cut(MIX, 32)),
    Row("age key", "AGE-SECRET-" + "KEY-1" + cut(UP, 58)),
    Row("postman key", "PMAK-" + cut(HEX, 24) + "-" + cut(HEX, 34)),
    Row("hubspot token", "pat-na1-" + UUID),
    Row("circleci token", "CCIPAT_" + cut(MIX, 22) + "_" + cut(HEX, 40)),
    Row("jwt", "eyJ" + "hbGciOiJIUzI1NiJ9.eyJ" + cut(MIX, 60) + "." + cut(MIX, 43)),
    Row("password hash", "$2b$" + "12$" + cut(MIX, 53), ("admin:{}", 'hash = "{}"')),
    Row("password hash", "$6$" + cut(MIX, 16) + "$" + cut(MIX, 86), ("root:{}:19000:0:99999:7:::",)),
    Row("password hash", "pbkdf2_" + "sha256$260000$" + cut(MIX, 22) + "$" + cut(MIX, 43) + "=", ("hash {}",)),
)

PEMS = tuple(
    Row("private key", pem(what + "PRIVATE KEY" + block), ("{}", "cat id_rsa\n{}\n$ ", "key = '''{}'''"))
    for what, block in (("", ""), ("RSA ", ""), ("EC ", ""), ("OPENSSH ", ""), ("PGP ", " BLOCK"), ("ENCRYPTED ", ""))
)

_PASSWORDS = (
    "DB_PASSWORD={}\nX=1", "export PGPASSWORD={} && psql", '"password": "{}"', "password: {}\nuser: me", "password = '{}'", "passwd: {}",
    "<password>{}</password>", "mysql --password={} -u root", "tool --password {} run", "Server=db;User=sa;Pwd={};Encrypt=yes",
    "define('DB_PASSWORD', '{}');", "smtp_pass = {}", '{{"user": "a", "pass": "{}"}}', "spring.datasource.password={}",
    'db_password: str = "{}"', "connect(user='a', password='{}')", "'password' => '{}',", '\\"password\\": \\"{}\\"', "?user=a&password={}&x=1",
    "- name: DB_PASSWORD\n  value: {}\n", '<add key="Password" value="{}"/>', "ALTER USER a WITH PASSWORD '{}';", "ENV ROOT_PASSWORD {}",
    'os.environ["DB_PASSWORD"] = "{}"', "$env:DB_PASSWORD = '{}'", "ansible_become_pass: {}\n", '["--password", "{}"]',
    "error: login failed (password={}) at db.py:12", "CREATE USER 'a'@'%' IDENTIFIED BY '{}'",
)  # fmt: skip
NAMED = (
    Row("password", "hunter2" + "Zeppelin", _PASSWORDS),
    Row("password", "S3cr" + "et!Pa$$w0rd", _PASSWORDS),
    Row("password", "change" + "meplease", ("POSTGRES_PASSWORD: {}", "POSTGRES_PASSWORD={}", 'password = "{}"')),
    Row("aws secret access key", cut(MIX, 38) + "/+", ("aws_secret_access_key = {}", '"SecretAccessKey": "{}"', "AKIA" + cut(UP, 16) + ",{}", "AWS Secret Access Key [None]: {}", "aws configure set aws_secret_access_key {}")),
    Row("aws session token", cut(MIX, 200), ("AWS_SESSION_TOKEN={}", '"SessionToken": "{}"', "x-amz-security-token: {}")),
    Row("azure account key", cut(MIX, 86) + "==", ("DefaultEndpointsProtocol=https;AccountName=a;AccountKey={};EndpointSuffix=x", "AZURE_STORAGE_KEY={}")),
    Row("sas signature", cut(MIX, 40) + "%3D", ("https://a.blob.core.windows.net/c?sv=2022&sp=r&sig={}", "https://s/x?X-Amz-Expires=9&X-Amz-Signature={}")),
    Row("cohere key", cut(MIX, 40), ('co = cohere.Client("{}")', "COHERE_API_KEY={}", "CO_API_KEY={}", "MISTRAL_API_KEY={}", "x-api-key: {}", "X-Api-Key: {}", '"apiKey": "{}"', "?api_key={}&a=b", "api_key='{}'", "DD_API_KEY={}", "DD-APPLICATION-KEY: {}", "OPENAI_KEY={}")),
    Row("datadog key", cut(HEX, 32), ("DD_API_KEY={}", "datadog:\n  api_key: {}\n", "DD_APP_KEY: {}", "MISTRAL_API_KEY={}", "TWILIO_AUTH_TOKEN={}", "auth_token = '{}'", 'Client("AC' + cut(HEX[::-1], 32) + '", "{}")')),
    Row("uuid token", UUID, ("HEROKU_API_KEY={}", 'snyk_token: "{}"', "VAULT_SECRET_ID={}")),
    Row("cloudflare token", cut(MIX, 40), ("CLOUDFLARE_API_TOKEN={}", "CF_API_TOKEN: {}", "VERCEL_TOKEN={}", "vercel deploy --token {}", "X-Auth-Key: {}", "client_secret={}", "PAYPAL_CLIENT_SECRET={}", "refresh_token: '{}'", '"access_token":"{}"', "--api-key={}", "encryption_key: {}", "SIGNING_KEY={}", "SECRET_KEY_BASE={}", "jwt_secret = '{}'", "JWT_SECRET={}", "private_key: {}")),
    Row("authorization", cut(MIX, 40), ("Authorization: Bearer {}", "authorization: token {}", '-H "Authorization: Bearer {}"', '"Authorization": "Bearer {}"', "headers = {{'Authorization': f'Bearer {}'}}", "> Authorization: Bearer {}\n> Accept: */*", "Proxy-Authorization: Basic {}", "Authorization: {}", 'headers["Authorization"] = "Token {}"')),
    Row("authorization", "dXNlcjpwYXNz" + "d29yZEhlcmU=", ("Authorization: Basic {}", '"auth": "{}"', "_auth={}", '{{"auths": {{"r.io": {{"auth": "{}"}}}}}}')),
    Row("cookie", cut(MIX, 32), ("Cookie: session={}; theme=dark", "Set-Cookie: sid={}; Path=/; HttpOnly", '"Cookie": "a=1; sessionid={}"', "curl -b 'session={}' https://h/x", "cookie: JSESSIONID={}")),
    Row("password in a url", "Tr0ub4" + "dor&3x", ("postgres://app:{}@db:5432/x", "mysql://root:{}@localhost/x", "mongodb+srv://u:{}@c.mongodb.net", "redis://:{}@cache:6379/0", "amqp://u:{}@mq//", "origin https://me:{}@github.com/a/b.git (fetch)")),
    Row("token in a url", cut(MIX, 40), ("https://{}@github.com/a/b.git", "https://x-access-token:{}@github.com/a/b", "https://oauth2:{}@gitlab.com/a/b", "https://{}@o12.ingest.sentry.io/34")),
    Row("command line", "hunter2" + "Zeppelin", ("curl -u admin:{} https://h", "curl --user 'admin:{}' https://h", "sshpass -p '{}' ssh a@b", "sshpass -p {} ssh a@b", "mysql -u root -p{} db", "mysqldump -uroot -p'{}' db > x", "redis-cli -h h -a {} ping", "docker login -u me -p {} r.io", "echo {} | docker login -u me --password-stdin", "echo '{}' | sudo -S ls", "echo 'root:{}' | chpasswd", "openssl rsa -passin pass:{} -in k", "htpasswd -b f me {}", "smbclient //h/s -U me%{}", "http -f --auth me:{} h")),
    Row("netrc", "hunter2" + "Zeppelin", ("machine h login me password {}", "machine h\n  login me\n  password {}\n", "db.host:5432:app:me:{}\n")),
    Row("npmrc", cut(HEX, 36), ("//registry.npmjs.org/:_authToken={}", "npm config set //r/:_authToken={}")),
    Row("pypirc", "hunter2" + "Zeppelin", ("[pypi]\nusername = me\npassword = {}\n",)),
    Row("kubeconfig", cut(MIX, 120) + "==", ("    client-key-data: {}\n", "users:\n- user:\n    token: {}\n")),
    Row("kubernetes secret", "c3VwZXJzZWNyZXQx" + "MjM0", ("kind: Secret\nmetadata:\n  name: a\ndata:\n  conn: {}\n", '{{"kind": "Secret", "data": {{"conn": "{}"}}}}')),
    Row("wireguard key", cut(MIX, 43) + "=", ("[Interface]\nPrivateKey = {}\n", "PresharedKey = {}")),
    Row("one-time password secret", "JBSWY3DP" + "EHPK3PXPJBSW", ("otpauth://totp/a:me@x?secret={}&issuer=a", "TOTP_SECRET={}")),
    Row("putty key", cut(MIX, 64), ("PuTTY-User-Key-File-3: ssh-rsa\nPrivate-Lines: 1\n{}\nPrivate-MAC: 00",)),
    Row("service account", pem("PRIVATE KEY", "\\n"), ('{{"type": "service_account", "private_key": "{}\\n", "client_email": "a@b"}}',)),
)  # fmt: skip
ROWS = SHAPED + PEMS + NAMED

# Look-alikes: nothing here is a secret.
HARMLESS = (
    'api_key = "your-api-key"', "Authorization: Bearer <token>", "TOKEN=${TOKEN}", 'curl -H "Authorization: Bearer $TOKEN" x', "token: process.env.GITHUB_TOKEN",
    'key = os.environ["OPENAI_API_KEY"]', "ghp_" + "x" * 36, "password: ********", '{"password": null, "secret": true}', "def login(user: str, password: str) -> Token:",
    "token: Token", "commit 3f2a1b9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a", '"integrity": "sha512-' + cut(MIX, 86) + '=="', "sha256:" + cut(HEX, 64),
    "id: " + UUID, "[result of bash ls, 120 lines, out of view; recall 4f1c09be27]", "max_tokens: 4096", "tokens=12000", '"token_count": 4096', "api_key=api_key",
    'secret = get_secret("database/main")', "Rotate the access token when it expires", "password = input('Password: ')", "self.password = password", "const token = await getToken(user);",
    "password: string;", '<input type="password" placeholder="Enter your password">', '"password": "Enter your password"', "https://user:password@host/x", "postgres://$USER:$PASS@host/db",
    "nextPageToken: " + cut(MIX, 40), '"cache_key": "' + cut(HEX, 40) + '"', "--- PASS: TestParseKeys (0.00s)", "PWD=/home/me/work", "git push -u origin main", "docker run -u 1000:1000 img",
    "rsync -a host:path/to/file .", "tokenizer = Tokenizer.from_file('tokenizer.json')", "secretName: my-tls-cert", "pass `--keep` to the tool", "sk-learn and sk-your-key-here",
    '["password", "username", "email"]', "the public_key: " + cut(MIX, 40), "SECRET_NAME=projects/x/secrets/y", "password: {{ vault_password }}", "token=%s", "signature: " + cut(MIX, 44),
    "const { password } = req.body;", "if (!token) throw new Error('no token');", "session_id=" + UUID, "data:image/png;base64," + cut(MIX, 400), "primary_key=True, foreign_key=None", "keys: a, b",
    "Basic auth is required here", "password: must be at least 8 characters", "api-key: <your key here>", 'password: "${DB_PASSWORD}"', "arn:aws:secretsmanager:eu-west-1:123:secret:a-b", "s.startswith('abcdefghijklmnopqrstuvw')",
    'req.Header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString(b))', "clientSecret: env.AUTH_AZURE_AD_B2C_SECRET,", '<label for="password">Password:</label>',
    "user_pass = '%s:%s' % (user, word)", '$adminPassword = ConvertTo-SecureString "{1}" -AsPlainText', "POSTGRES_PASSWORD=changethis", '{"password": "wrong"}', 'json.Password != "123"',
    "const ResetLinkSent = PasswordBroker::RESET_LINK_SENT;", "'password' => $request->getPassword()", "['password' => '--password='.$given]", "--user=\"${:LOAD_USER}\"",
    'fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", v, m)',
)  # fmt: skip
