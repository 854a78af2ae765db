import time

import pytest

from helpers.cases import cases
from kdoctor.snapshot.redaction import Redaction
from kdoctor.text.sanitize import clean
from kdoctor.text.secrets import is_identifying, is_secret_name, mask, mask_variable


@cases(
    ("https://user:pw@host/x", "https://***@host/x"),
    ("git+https://tok@host/r.git@v1", "git+https://***@host/r.git@v1"),
    ("ghp_" + "a" * 36, "***"),
    ("key AKIA" + "A1B2C3D4E5F6G7H8 end", "key *** end"),
    ("hf_" + "a" * 34, "***"),
    ("password=hunter2 user=x", "password=*** user=x"),
    ("https://host/?a=1&token=abc&b=2", "https://host/?a=1&token=***&b=2"),
    ("Authorization: Bearer abcdefghijkl", "Authorization: Bearer ***"),
    ("python train.py --password hunter2 --epochs 3", "python train.py --password *** --epochs 3"),
    ("job --api-key 'a b' -v", "job --api-key *** -v"),
    ("job --key=-abc", "job --key=***"),
    ("job --wandb.api_key abc", "job --wandb.api_key ***"),
    ("job --hf-token\tabc", "job --hf-token\t***"),
    ("user=x;pw=abc", "user=x;pw=***"),
    ("S3_KEY=abc region=x", "S3_KEY=*** region=x"),
    ("MASTER_ADDR=ada:hunter2@node1:29500", "MASTER_ADDR=***@node1:29500"),
    ("redis ada:hunter2@[fe80::1]:6379", "redis ***@[fe80::1]:6379"),
    ("DB_PASS=hunter2 job", "DB_PASS=*** job"),
    ("docker login -u ada -p hunter2 host", "docker login -u ada -p *** host"),
    ("mysql -u root -phunter2 db", "mysql -u root -p*** db"),
    ("redis-cli -h node1 -a hunter2 ping", "redis-cli -h node1 -a *** ping"),
    (f"wandb login {'0a1b' * 10}", "wandb login ***"),
    ("Cookie: session=hunter2; a=b", "Cookie: session=***; a=b"),
    (f"npm_{'a1B2' * 9}", "***"),
    (f"dop_v1_{'0a1b' * 16}", "***"),
    ('api_key="two words" job', 'api_key="***" job'),
    ("password: 'two words', user: x", "password: '***', user: x"),
    (r'password="a\"b c" job', 'password="***" job'),
    ('password="cut off', 'password="*** off'),
    (r"{\"password\": \"abc\"}", r'{\"password\": \"***"}'),
)
def test_secret_is_masked_once(text: str, masked: str) -> None:
    assert mask(text) == masked
    assert mask(masked) == masked


@cases(
    "tokenizers>=0.13",
    "google-auth-token==1.0",
    "api-token~=2.0",
    "https://host/path@v1",
    "git+https://github.com/a/b@main",
    "user@host",
    "git@github.com:a/b.git",
    "job:1.2@sha256:0a1b2c",
    "ghcr.io/org/job:1.2@sha256:0a1b2c",
    "--tokenizer bert --max-tokens 100 --key-size 2 --use-token --epochs 3",
    "--monkey 3 -p 22 --pass-through x",
    "primary key = id",
    "0000:01:00.0",
    "GPU-3f2d0c1e-1111-2222-3333-444455556666",
    "NVRM: API mismatch: the client has the version 580.173.02",
    "/usr/local/cuda/lib64:/opt/lib",
    "python login.py -p 8080",
    "mysql -h node1 -P 3306",
    "srun -p gpu python train.py --pass-through",
    "wandb login --relogin",
)
def test_harmless_text_is_kept(text: str) -> None:
    assert mask(text) == text


@cases("HF_TOKEN", "SLURM_JWT", "API_KEY", "DB_PASSWORD", "X_AUTH", "DB_PASS", "apiKey", "SECRET")
def test_name_suggests_a_secret(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["NCCL_IB_PKEY", "KERAS_BACKEND", "TF_CONFIG", "OMPI_AUTHOR", "SLURM_JOB_ID", "keys"])
def test_name_suggests_no_secret(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    "part",
    [
        *("a", "a.", "a-", "_", "1.", "a://", "token", "token=", "key ", "--a ", "--a-", "eyJ-", "eyJ", "a:b", "a:"),
        *(
            "sk-",
            "login ",
            "mysql ",
            "mysql -",
            "cookie:",
            "wandb login ",
            "bearer ",
            "-----BEGIN ",
            "authorization: ",
            "/home/",
            "\x1b[",
            "::",
            " ",
            '"',
            "--password ",
        ),
    ],
)
def test_time_grows_with_the_text_and_not_faster(part: str) -> None:
    text = part * (2**16 // len(part))
    start = time.process_time()
    mask(text)
    mask_variable("NAME", text)
    is_identifying(text)
    Redaction(home="/home/ada", user="ada").text(text)
    clean(text)
    assert time.process_time() - start < 3  # a quadratic pattern takes minutes; 0.1 s is usual


def test_broken_json_is_searched_as_text() -> None:
    assert mask_variable("TF_CONFIG", '{"password": "hunter2"') == '{"password": "***"'
    assert mask_variable("TF_CONFIG", "[" * 100_000) == "[" * 100_000
    assert mask_variable("X_TOKEN", "") == ""


FORMS = """\
os.environ["HF_TOKEN"] = "hf_{S}{S}2Vb4"
os.environ["MY_TOKEN"] = "{S}"
os.environ['AWS_SECRET_ACCESS_KEY']='{S}{S}2Vb4'
wandb.login(key="{S}{S}2Vb4")
login(token="{S}")
export GITHUB_PAT={S}
"pat": "{S}"
SECRET_KEY_BASE={S}
sk_live_{S}
ya29.{S}{S}2Vb4
SG.{S}.{S}{S}2Vb4
https://hooks.slack.com/services/T00000000/B00000000/{S}{S}
mysql -u root -p{S}
xoxb-123456789012-123456789012-{S}{S}
glpat-{S}
ghp_{S}{S}
github_pat_{S}{S}2Vb4
AIzaSy{S}{S}
hf_{S}{S}
Authorization: Bearer {S}
Authorization: Basic {S}==
api_key={S}
--api-key {S}
--token={S}
password: {S}
"password": "{S}"
postgres://user:{S}@host/db
https://user:{S}@host/x
client_secret={S}
COMET_API_KEY={S}
WANDB_API_KEY={S}
MLFLOW_TRACKING_PASSWORD={S}
NEPTUNE_API_TOKEN="{S}"
OPENAI_API_KEY=sk-proj-{S}{S}2Vb4
sk-ant-api03-{S}{S}2Vb4
{"access_token": "{S}"}
refresh_token={S}
npm_{S}{S}
pypi-AgEIcHlwaS5vcmc{S}{S}2Vb4
dckr_pat_{S}{S}
AccountKey={S}{S}2Vb4==
SharedAccessSignature=sv=2020&sig={S}
https://x.blob.core.windows.net/c?sv=2020-08-04&sig={S}
https://discord.com/api/webhooks/123456789012345678/{S}{S}2Vb4{S}
https://outlook.office.com/webhook/{S}
eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.{S}{S}2Vb4
KAGGLE_KEY={S}
"key": "{S}{S}", "username": "x"
X-API-Key: {S}
Cookie: session={S}
Set-Cookie: sid={S}; Path=/
twilio SK{H}
mongodb+srv://u:{S}@c.mongodb.net
redis://:{S}@h:6379
curl -u user:{S} http://h
aws_session_token = {S}{S}2Vb4
DATABRICKS_TOKEN=dapi{H}
token: dapi{H}
r8_{S}{S}2
rpa_{S}{S}2Vb4
secret={S}
PASSWD={S}
pwd={S}
passphrase: {S}
AZURE_STORAGE_KEY={S}
DefaultEndpointsProtocol=https;AccountName=x;AccountKey={S}==;
.netrc machine h login u password {S}
docker login -u u -p {S}
sshpass -p {S} ssh
--password {S}
http://h/?token={S}
http://h/?api_key={S}&x=1
http://h/?key={S}
openai.api_key = "{S}"
client = OpenAI(api_key="{S}")
comet_ml.init(api_key="{S}")
run = neptune.init_run(api_token="{S}")
HfFolder.save_token("{S}")
lightning login --api-key {S}
clearml access_key = "{S}"
secret_key = "{S}"
nvapi-{S}{S}2Vb4
gsk_{S}{S}2Vb4
AZURE_CLIENT_SECRET={S}
SLACK_WEBHOOK=https://hooks.slack.com/services/T0/B0/{S}
token {S}
"apiKey":"{S}"
app_secret: {S}
Proxy-Authorization: Basic {S}
ACCESSKEY={S}
sig={S}
auth_token={S}
authToken: "{S}"
wandb: api_key: {S}
netrc: machine api.wandb.ai login user password {S}
os.environ['WANDB_API_KEY'] = '{S}'
os.environ.setdefault("HF_TOKEN", "hf_{S}")
dbutils.secrets.put(token="{S}")
huggingface-cli login --token hf_{S}
comet_ml.Experiment(api_key='{S}')
mlflow.set_tracking_uri("https://u:{S}@mlflow.host")
neptune.init(api_token='{S}')
-H "Authorization: token {S}"
-H 'X-Auth-Token: {S}'
export AWS_SECRET_ACCESS_KEY="{S}{S}"
aws_secret_access_key = {S}{S}
"aws_secret_access_key": "{S}{S}"
GOOGLE_API_KEY=AIzaSy{S}
"refresh_token": "1//{S}{S}"
azure: sig={S}%3D
ARM_CLIENT_SECRET: {S}
HUGGING_FACE_HUB_TOKEN=hf_{S}{S}
SINGULARITY_DOCKER_PASSWORD={S}
APPTAINER_DOCKER_PASSWORD={S}
git clone https://oauth2:{S}@gitlab.host/a.git
git clone https://x-access-token:{S}@github.com/a/b
ftp://ada:{S}@host/file
amqp://ada:{S}@mq:5672
postgresql+psycopg2://ada:{S}@db/x
REDIS_URL=redis://default:{S}@h:6379/0
CELERY_BROKER_URL=amqp://a:{S}@h
ray start --redis-password={S}
ray start --redis-password {S}
JUPYTER_TOKEN={S}
http://127.0.0.1:8888/?token={S}
http://127.0.0.1:8888/lab?token={S}{S}
kubectl create secret generic x --from-literal=password={S}
password = {S}  # from vault
VAULT_TOKEN=hvs.{S}{S}
PGPASSWORD={S} psql
MYSQL_PWD={S} mysql
SSHPASS={S} sshpass -e ssh host
s3cmd --secret_key={S}{S}
rclone --s3-secret-access-key {S}{S}
DISCORD_WEBHOOK=https://discordapp.com/api/webhooks/1234/{S}{S}
TELEGRAM_TOKEN=123456789:{S}{S}
PAT: {S}
azure-devops --pat {S}
"sas": "?sv=2020&sig={S}"
jwt={S}{S}
signature={S}
passphrase='{S} {S}'
clearml: secret_key = "{S}"
"""
"""How the services that people train with write their secrets: ``{S}`` is one, ``{H}`` hexadecimal."""
SECRETS = {"S": "q7Xw9Zk3Lm5Pn8Rt2Vb4", "H": "0a1b2c3d" * 4}


@pytest.mark.parametrize("form", FORMS.splitlines())
def test_secret_of_a_known_service_is_masked(form: str) -> None:
    text = form
    for name, value in SECRETS.items():
        text = text.replace(f"{{{name}}}", value)
    assert text != form
    assert [value for value in SECRETS.values() if value[:10] in mask(text)] == []
