"""lib_postgres.py: a separate PostgreSQL server, on a Unix socket in a temporary folder.

    with lib_postgres.Cluster() as cluster:
        cluster.url("one")      makes a database and returns its address: postgresql:///one?host=...

The server refuses to run as root, so it runs as its package's user, or as nobody. A server that already runs
is not contacted and not stopped, because each server has its socket in its own folder.
"""
import glob
import os
import pwd
import shutil
import subprocess
import tempfile

PATIENCE_S = 120
PORT = "54321"  # a part of the socket's name; no TCP is listened on


def programs():
    """Returns the folder with the programs of the newest installed server."""
    found = glob.glob("/usr/lib/postgresql/*/bin/initdb")
    if not found:
        raise AssertionError("no PostgreSQL server is installed: .ci/deps fleet")
    return os.path.dirname(max(found, key=lambda path: float(path.split("/")[4])))


def owner():
    """Returns the user that runs the server, or None for the user of the test."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise AssertionError("there is neither a user postgres nor nobody")


class Cluster:
    def __init__(self):
        self.bin = programs()
        self.owner = owner()
        self.folder = tempfile.mkdtemp(prefix="reach-pg-")
        self.data = os.path.join(self.folder, "data")
        self.log = os.path.join(self.folder, "log")
        if self.owner:
            os.chown(self.folder, self.owner.pw_uid, self.owner.pw_gid)
        os.chmod(self.folder, 0o755)
        self.user = self.owner.pw_name if self.owner else pwd.getpwuid(os.geteuid()).pw_name

    def _as_owner(self, *arguments):
        command = list(arguments)
        if self.owner:
            command = ["setpriv", f"--reuid={self.owner.pw_uid}", f"--regid={self.owner.pw_gid}",
                       "--clear-groups", "--"] + command
        # The server keeps inherited files open, so a pipe would never end.
        with open(os.path.join(self.folder, "said"), "w+", encoding="utf-8") as said:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, check=False,
                                  timeout=PATIENCE_S, cwd=self.folder, env={**os.environ, "HOME": self.folder})
            said.seek(0)
            if done.returncode != 0:
                raise AssertionError(f"{' '.join(arguments)}: exit status {done.returncode}\n{said.read()}")

    def __enter__(self):
        try:
            self._as_owner(os.path.join(self.bin, "initdb"), "-D", self.data, "-U", self.user, "-A", "trust",
                           "-E", "UTF8", "--locale=C", "--no-sync")
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if os.path.exists(os.path.join(self.data, "postmaster.pid")):
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self):
        options = f"-c listen_addresses= -c unix_socket_directories={self.folder} -c port={PORT} -c fsync=off"
        self._as_owner(os.path.join(self.bin, "pg_ctl"), "-D", self.data, "-l", self.log, "-w", "-t",
                       str(PATIENCE_S), "-o", options, "start")

    def stop(self):
        self._as_owner(os.path.join(self.bin, "pg_ctl"), "-D", self.data, "-w", "-m", "immediate", "stop")

    def cpu_seconds(self):
        """Returns the CPU time of the server so far: of its processes, of ended ones, and of those not yet waited
        for."""
        def ticks(pid):
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                fields = file.read().rsplit(")", 1)[1].split()
            return sum(map(int, fields[11:15]))

        with open(os.path.join(self.data, "postmaster.pid"), encoding="utf-8") as file:
            pid = file.readline().strip()
        with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
            children = file.read().split()
        total = ticks(pid)
        for child in children:
            try:
                total += ticks(child)
            except OSError:  # it has ended since: read the sum that has it
                return self.cpu_seconds()
        return total / os.sysconf("SC_CLK_TCK")

    def sql(self, text, database="postgres"):
        """Returns the output of psql, unaligned, without headings."""
        done = subprocess.run([os.path.join(self.bin, "psql"), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1",
                               self._address(database), "-c", text],
                              capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        if done.returncode != 0:
            raise AssertionError(f"psql: {done.stderr}")
        return done.stdout.rstrip("\n")

    def _address(self, database):
        return f"postgresql:///{database}?host={self.folder}&port={PORT}&user={self.user}"

    def url(self, database):
        """Returns the address of a new database."""
        self.sql(f'CREATE DATABASE "{database}"')
        return self._address(database)
