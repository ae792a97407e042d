#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ingot's signatures and those of model_signing (PyPI), each checked by the other.  Prints TAP.

Folders with sub-folders, names beyond ASCII, empty files and a thousand files; three curves; by key
and by certificate; the source is gone when ingot looks.
"""

import base64
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
INGOT = os.environ["INGOT"]
MODELS = HERE.parent / "models"


def run(*args, ok=True):
    done = subprocess.run([str(a) for a in args], capture_output=True, text=True)
    if (done.returncode == 0) != ok:
        raise AssertionError(f"{args}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def upstream(*args, ok=True):
    return run(sys.executable, "-m", "model_signing", *args, ok=ok)


def openssl(*args):
    return run("openssl", *args)


def make_key(name, curve="P-256"):
    openssl("genpkey", "-quiet", "-algorithm", "EC", "-pkeyopt", f"ec_paramgen_curve:{curve}", "-out",
            f"{name}.pem")
    os.chmod(f"{name}.pem", 0o600)
    openssl("pkey", "-in", f"{name}.pem", "-pubout", "-out", f"{name}.pub")


def make_folder(many=0):
    shutil.rmtree("m", ignore_errors=True)
    shutil.copytree(MODELS / "phi3-pocket", "m")
    for path in Path("m").rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    files = {"sub.a": "x", "sub/x": "y", "sub/deep/\u00fcml\u00e4ut \u6a21\u578b.txt": "z", "empty": "", ".gitattributes": "w"}
    files.update({f"many/{i}.txt": str(i) for i in range(many)})
    for name, text in files.items():
        path = Path("m") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def convert(name):
    run(INGOT, "convert", "-q", "-n", name, "m")
    shutil.rmtree("m")


def export(name):
    shutil.rmtree("out", ignore_errors=True)
    shutil.rmtree("out.sigs", ignore_errors=True)
    run(INGOT, "export", name, "out")


def theirs_by_key(curve, many):
    make_key("k", curve)
    make_folder(many)
    upstream("sign", "key", "--private_key", "k.pem", "--signature", "theirs.sig", "m")
    convert("theirs")
    text = run(INGOT, "verify", "--signature", "theirs.sig", "--key", "k.pub", "theirs")
    assert "0 missing, 0 different, 0 extra" in text, text


def ours_by_key(curve, many):
    make_key("k", curve)
    make_folder(many)
    convert("ours")
    run(INGOT, "sign", "--key", "k.pem", "-o", "ours.sig", "ours")
    export("ours")
    upstream("verify", "key", "--public_key", "k.pub", "--signature", "ours.sig", "out")
    (Path("out") / "config.json").write_text("{}")
    upstream("verify", "key", "--public_key", "k.pub", "--signature", "ours.sig", "out", ok=False)
    os.unlink("ours.sig")


def make_chain():
    make_key("root"), make_key("middle"), make_key("leaf")
    openssl("req", "-x509", "-key", "root.pem", "-subj", "/CN=Root", "-days", "99", "-out", "root.crt",
            "-addext", "keyUsage=keyCertSign")
    for name, issuer, extensions in (
            ("middle", "root", "basicConstraints=critical,CA:TRUE\nkeyUsage=keyCertSign\n"),
            ("leaf", "middle", "basicConstraints=CA:FALSE\nkeyUsage=digitalSignature\n")):
        Path("ext").write_text(extensions)
        openssl("req", "-new", "-key", f"{name}.pem", "-subj", f"/CN={name}", "-out", "r.csr")
        openssl("x509", "-req", "-in", "r.csr", "-CA", f"{issuer}.crt", "-CAkey", f"{issuer}.pem", "-days", "30",
                "-extfile", "ext", "-out", f"{name}.crt")


def by_certificate():
    make_chain()
    make_folder()
    upstream("sign", "certificate", "--private_key", "leaf.pem", "--signing_certificate", "leaf.crt",
             "--certificate_chain", "middle.crt", "--signature", "theirs.sig", "m")
    convert("certified")
    text = run(INGOT, "verify", "--signature", "theirs.sig", "--certificate-chain", "root.crt", "certified")
    assert "by CN=leaf" in text and "0 extra" in text, text
    run(INGOT, "sign", "--key", "leaf.pem", "--certificate", "leaf.crt", "--chain", "middle.crt", "-o", "ours.sig",
        "certified")
    export("certified")
    upstream("verify", "certificate", "--certificate_chain", "root.crt", "--signature", "ours.sig", "out")
    os.unlink("ours.sig")


def two_on_one_export():
    make_folder()
    make_key("a"), make_key("b")
    upstream("sign", "key", "--private_key", "a.pem", "--signature", "m/model.sig", "--ignore-paths", "m/model.sig", "m")
    convert("both")
    run(INGOT, "sign", "--key", "b.pem", "both")
    export("both")
    kept = sorted(Path("out.sigs").iterdir())
    assert len(kept) == 2, kept
    for path in kept:
        key = "a.pub" if path.name == "model.sig" else "b.pub"
        upstream("verify", "key", "--public_key", key, "--signature", path, "out")
        run(INGOT, "verify", "--signature", path, "--key", key, "both")


def other_tensors_under_a_manifest_that_quotes_the_signed_hashes():
    make_key("k")
    make_folder()
    shard = next(Path("m").glob("*00001*.safetensors"))
    upstream("sign", "key", "--private_key", "k.pem", "--signature", "theirs.sig", "m")
    data = bytearray(shard.read_bytes())
    signed = hashlib.sha256(data).hexdigest()
    data[-1] ^= 1
    shard.write_bytes(data)
    convert("other")
    from forge import forge

    forged = forge(next(Path(os.environ["INGOT_STORE"], "packs").glob("*.ingot")),
                   hashlib.sha256(data).hexdigest(), signed)
    # By its own digest it is all that it says it is: whoever packed it wrote that.
    run(INGOT, "verify", forged)
    text = run(INGOT, "verify", "--signature", "theirs.sig", "--key", "k.pub", forged, ok=False)
    assert f"{shard.name}: SHA-256 of the file in the pack is not the signed one" in text, text
    assert "1 different, 0 extra" in text, text


def flipped(path, at, out):
    """A copy with one byte changed; at: an offset, or bytes in whose middle it lies."""
    data = bytearray(Path(path).read_bytes())
    if isinstance(at, bytes):
        assert at in data, f"{path}: {at[:40]}"
        at = data.index(at) + len(at) // 2
    data[at] ^= 1
    Path(out).write_bytes(data)
    return out


def in_bundle(path, where, out):
    """A copy of a bundle with one bit of its payload, signature or leaf certificate changed."""
    bundle = json.loads(Path(path).read_text())
    envelope = bundle["dsseEnvelope"]
    holder, key = {"statement": lambda: (envelope, "payload"),
                   "signature": lambda: (envelope["signatures"][0], "sig"),
                   "certificate": lambda: (bundle["verificationMaterial"]["x509CertificateChain"]["certificates"][0],
                                           "rawBytes")}[where]()
    data = bytearray(base64.b64decode(holder[key]))
    data[len(data) // 2] ^= 1
    holder[key] = base64.b64encode(data).decode()
    Path(out).write_text(json.dumps(bundle))
    return out


def one_byte_flipped_anywhere():
    """Signed by model_signing with a certificate; a byte in each kind of place, each with its words."""
    make_chain()
    make_folder()
    upstream("sign", "certificate", "--private_key", "leaf.pem", "--signing_certificate", "leaf.crt",
             "--certificate_chain", "middle.crt", "--signature", "theirs.sig", "m")
    shard = Path("m", "model-00001-of-00002.safetensors").read_bytes()
    texts = {n: Path("m", n).read_bytes() for n in ("config.json", "tokenizer.model")}
    convert("pocket")
    pack = next(Path(os.environ["INGOT_STORE"], "packs").glob("*.ingot"))
    name = pack.name

    def verify(file, bundle="theirs.sig", roots="root.crt", ok=False):
        return run(INGOT, "verify", "--expect", name[:64], "--signature", bundle, "--certificate-chain", roots, file,
                   ok=ok)

    verify(pack, ok=True)
    header = int.from_bytes(shard[:8], "little")
    norm = json.loads(shard[8:8 + header])["model.layers.0.input_layernorm.weight"]["data_offsets"]
    small = shard[8 + header + norm[0]:8 + header + norm[1]]
    large = shard[8 + header + 3000000:8 + header + 3000064]
    places = {
        "tensor": (large, ["tensor \"model.", "00001-of-00002.safetensors: SHA-256 of the file in the pack is not the signed"]),
        "small tensor": (small, ["tensor \"model.layers.0.input_layernorm.weight\"", "is not the signed one"]),
        "header text": (shard[8:8 + header], ["blob", "model-00001-of-00002.safetensors"]),
        "tokenizer": (texts["tokenizer.model"], ["blob", "tokenizer.model"]),
        "config": (texts["config.json"], ["blob", "config.json"]),
        "superblock": (20, ["structure"]),
        "padding before the weights": (8000, ["padding", "digest"]),
        "tail": (pack.stat().st_size - 5000, ["digest"]),
    }
    report = []
    for what, (at, words) in places.items():
        text = verify(flipped(pack, at, "flipped.ingot"))
        for word in words:
            assert word in text, f"{what}: does not say {word!r}: {text}"
        report.append((what, next(line for line in text.splitlines() if words[0] in line)))
    for what, word in (("statement", "is not over this statement, or not by this key"),
                       ("signature", "is not over this statement, or not by this key"),
                       ("certificate", "")):
        text = verify(pack, bundle=in_bundle("theirs.sig", what, "flipped.sig"))
        assert word in text and ("NOT GOOD" in text or "flipped.sig" in text), text
        report.append((what, text.strip().splitlines()[-1]))
    pem = Path("root.crt").read_text().splitlines()
    der = bytearray(base64.b64decode("".join(pem[1:-1])))
    der[len(der) // 2] ^= 1
    Path("flipped.crt").write_text("\n".join([pem[0], base64.b64encode(der).decode(), pem[-1], ""]))
    text = verify(pack, roots="flipped.crt")
    report.append(("root", text.strip().splitlines()[-1]))
    for what, line in report:
        print(f"# {what}: {line.strip()[:150]}")
    verify(pack, ok=True)


def rewritten_while_it_is_read():
    """A thread flips bytes of the pack and puts them back while it is verified, again and again: what
    passes has been read whole before or between; nothing hangs, and in the end the pack is good."""
    make_key("k")
    make_folder()
    upstream("sign", "key", "--private_key", "k.pem", "--signature", "theirs.sig", "m")
    convert("pocket")
    pack = next(Path(os.environ["INGOT_STORE"], "packs").glob("*.ingot"))
    pack.chmod(0o644)
    size, stop, rng = pack.stat().st_size, threading.Event(), random.Random(1)

    def rewrite():
        with open(pack, "r+b", buffering=0) as file:
            while not stop.is_set():
                at = rng.randrange(65536, size)
                byte = os.pread(file.fileno(), 1, at)
                os.pwrite(file.fileno(), bytes([byte[0] ^ 1]), at)
                time.sleep(0.0005)
                os.pwrite(file.fileno(), byte, at)

    thread = threading.Thread(target=rewrite)
    thread.start()
    codes = []
    try:
        for _ in range(30):
            codes.append(subprocess.run([INGOT, "verify", "--signature", "theirs.sig", "--key", "k.pub", "pocket"],
                                        capture_output=True, timeout=60).returncode)
            codes.append(subprocess.run([INGOT, "load", "-d", "host", "pocket"], capture_output=True,
                                        timeout=60).returncode)
    finally:
        stop.set()
        thread.join()
    print(f"# {codes.count(0)} runs passed, {codes.count(1)} found it, {codes.count(3)} could not open it")
    assert set(codes) <= {0, 1, 3}, codes
    assert codes.count(1) > 0, "nothing was ever found"
    run(INGOT, "verify", "--signature", "theirs.sig", "--key", "k.pub", "pocket")


def the_example_of_the_readme():
    readme = (HERE.parent.parent / "README.md").read_text().split("## Who published it?")[1].split("##")[0]
    commands = [line[6:] for line in readme.splitlines() if line.startswith("    $ ")]
    first, second = commands[:6], commands[6:]
    assert first[-1].startswith("ingot verify --signature") and len(second) == 3, commands
    make_folder()
    os.rename("m", "phi3-pocket")
    os.mkdir("bin")
    os.symlink(os.path.realpath(INGOT), "bin/ingot")
    Path("bin/model_signing").write_text(f"#!/bin/sh\nexec {sys.executable} -m model_signing \"$@\"\n")
    os.chmod("bin/model_signing", 0o755)
    os.environ["PATH"] = f"{os.getcwd()}/bin:{os.environ['PATH']}"
    text = run("bash", "-eu", "-c", "\n".join(first))
    assert "phi3-pocket: verified" in text and "0 missing, 0 different, 0 extra" in text, text
    assert not Path("phi3-pocket").exists()
    # What the second part speaks of: a cast, a folder of inputs, and rules of the user's.
    os.environ["XDG_CONFIG_HOME"] = os.getcwd() + "/config"
    rules = Path("config/ingot/trust.d")
    rules.mkdir(parents=True, mode=0o755)
    shutil.copy("public.pem", rules / "acme.pem")
    key = hashlib.sha256(Path("public.pem").read_bytes()).hexdigest()
    (rules / "acme.trust").write_text(f"allow key=sha256:{key} name=acme/*\n")
    os.mkdir("evals")
    Path("evals/panel.txt").write_text("The capital of France is\n")
    run("bash", "-euc", "ingot convert --dtype bf16 -n small phi3-pocket; ingot tag phi3-pocket acme/model; "
        "chmod 600 key.pem; ingot sign --key key.pem acme/model")
    text = run("bash", "-eu", "-c", "\n".join(second).replace("load ", "load -d host "))
    assert "the same digest" in text and "evals-v1" in text and "accepted by acme.trust:1" in text, text
    run(INGOT, "verify", "--receipt", "run.json", "--key", "public.pem")


def main():
    try:
        import model_signing  # noqa: F401
        import numpy  # noqa: F401
        import OpenSSL  # noqa: F401
    except ImportError:
        print("1..0 # SKIP model_signing or numpy is not installed")
        return
    tests = [(f"{f.__name__} {curve}, {many} files more", lambda f=f, c=curve, n=many: f(c, n))
             for f in (theirs_by_key, ours_by_key) for curve, many in (("P-256", 0), ("P-384", 1000), ("P-521", 0))]
    tests += [(f.__name__, f) for f in (by_certificate, two_on_one_export,
                                        other_tensors_under_a_manifest_that_quotes_the_signed_hashes,
                                        one_byte_flipped_anywhere, rewritten_while_it_is_read,
                                        the_example_of_the_readme)]
    print(f"1..{len(tests)}")
    for i, (name, test) in enumerate(tests, 1):
        folder = tempfile.mkdtemp()
        os.environ["INGOT_STORE"] = folder + "/store"
        os.chdir(folder)
        try:
            test()
            print(f"ok {i} - signing: {name}", flush=True)
        except Exception as error:  # noqa: BLE001
            print("# " + str(error).replace("\n", "\n# "))
            print(f"not ok {i} - signing: {name}", flush=True)
        os.chdir("/")
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
