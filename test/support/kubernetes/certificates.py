"""Certificates and kubeconfigs of a cluster: an authority, and who may do what by the names it signs."""

from pathlib import Path

from support.shell import run

#: name: (subject, alternative names)
HOLDERS = {
    "apiserver": ("/CN=kube-apiserver", "IP:127.0.0.1,IP:{node},IP:10.96.0.1,DNS:localhost,DNS:kubernetes"),
    "admin": ("/O=system:masters/CN=admin", None),
    "kubelet-client": ("/O=system:masters/CN=apiserver-kubelet-client", None),
    "kubelet": ("/O=system:nodes/CN=system:node:node1", "IP:127.0.0.1,IP:{node},DNS:node1"),
    "kcm": ("/CN=system:kube-controller-manager", None),
    "sched": ("/CN=system:kube-scheduler", None),
}


class Certificates:
    def __init__(self, directory, node):
        self.directory = Path(directory)
        self.directory.mkdir()
        self.node = node
        run("openssl", "genrsa", "-out", self.path("sa.key"), "2048")
        run("openssl", "rsa", "-in", self.path("sa.key"), "-pubout", "-out", self.path("sa.pub"))
        run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-keyout",
            self.path("ca.key"), "-out", self.path("ca.crt"), "-subj", "/CN=kube-ca")
        for name, (subject, names) in HOLDERS.items():
            self.sign(name, subject, names)

    def path(self, name):
        return self.directory / name

    def sign(self, name, subject, names=None):
        extensions = self.path(f"{name}.ext")
        names = (names or "DNS:none").format(node=self.node)
        extensions.write_text(f"subjectAltName={names}\nextendedKeyUsage=serverAuth,clientAuth\n")
        run("openssl", "req", "-newkey", "rsa:2048", "-nodes", "-keyout", self.path(f"{name}.key"), "-out",
            self.path(f"{name}.csr"), "-subj", subject)
        run("openssl", "x509", "-req", "-in", self.path(f"{name}.csr"), "-CA", self.path("ca.crt"), "-CAkey",
            self.path("ca.key"), "-CAcreateserial", "-days", "30", "-out", self.path(f"{name}.crt"),
            "-extfile", extensions)

    def kubeconfig(self, name, server, *, token=None, space="default"):
        """A file by which `name` comes to the API server: with its certificate, or a token."""
        user = (f'{{token: "{token}"}}' if token else
                f'{{client-certificate: {self.path(name + ".crt")}, client-key: {self.path(name + ".key")}}}')
        path = self.directory / f"{name}.kubeconfig"
        path.write_text(
            "apiVersion: v1\nkind: Config\n"
            f'clusters: [{{name: c, cluster: {{server: "{server}", certificate-authority: {self.path("ca.crt")}}}}}]\n'
            f"users: [{{name: u, user: {user}}}]\n"
            f"contexts: [{{name: x, context: {{cluster: c, user: u, namespace: {space}}}}}]\ncurrent-context: x\n")
        return path
