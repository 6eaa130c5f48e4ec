"""lib_slurm.py: a separate real Slurm in a private network and under a temporary folder. It consists of slurmctld and
two slurmd, which have two GPUs and a reachd each.

    lib_slurm.enter()              must be called first: enters a new network namespace
    cluster = lib_slurm.Cluster()
    cluster.srun("-w", "n1", "--gres=gpu:2", "env")
    cluster.nodes[0].daemon_stop()
    cluster.close()                stops all started processes, also after a failure

Each slurmd has a mount namespace in which <folder>/run is the node's own /run/reachd, so that both nodes can use one
plugstack.conf. Jobs are submitted by a user who is not root.

On one machine Slurm needs three settings. It needs an address besides the loopback address before it resolves names
(AI_ADDRCONFIG), so the namespace gets one. File= of gres.conf must be a character device. Slurm must be configured to
bind only to the loopback address.
"""
import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time

import lib_fleet

common = lib_fleet.common

USER = "nobody"
INSIDE = "REACH_SLURM_INSIDE"  # set: this process has the network of its own already
PROGRAMS = ("slurmctld", "slurmd", "munged", "srun", "sbatch", "sinfo", "scontrol", "ip", "unshare",
            "setpriv")
CONF = """
ClusterName=reach
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=17002
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
CredType=cred/munge
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n/slurmd.log
SlurmctldDebug=info
SlurmdDebug=debug
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
MailProg=/bin/true
SlurmdParameters=config_overrides
SwitchType=switch/none
GresTypes=gpu
PlugStackConfig={folder}/plugstack.conf
ReturnToService=0
SlurmctldTimeout=300
SlurmdTimeout=300
MessageTimeout=100
KillWait=5
InactiveLimit=0
MaxJobCount=20000
MaxArraySize=10001
MinJobAge=3600
{more}
NodeName=n1 NodeAddr=127.0.0.1 NodeHostname=localhost Port=17011 CPUs=32 RealMemory=100 Gres=gpu:{gpus}
NodeName=n2 NodeAddr=127.0.0.1 NodeHostname=localhost Port=17012 CPUs=32 RealMemory=100 Gres=gpu:{gpus}
PartitionName=all Nodes=n1,n2 Default=YES MaxTime=10 State=UP OverSubscribe=FORCE:16
"""


def enter():
    """Runs this script again in its own network namespace, with an address besides the loopback address. Ends the
    script as skipped if that is impossible."""
    missing = [name for name in PROGRAMS if not shutil.which(name)]
    if missing or os.geteuid() != 0:
        print("not installed: " + ", ".join(missing) if missing else "needs root: a network of its own, devices")
        sys.exit(77)
    if INSIDE not in os.environ:
        os.environ[INSIDE] = "1"
        os.execvp("unshare", ["unshare", "--net", "--", sys.executable] + sys.argv)
    for command in ("link set lo up", "addr add 10.99.0.1/32 dev lo"):
        subprocess.run(["ip"] + command.split(), check=True)


class Node:
    """A node with its GPUs, its reachd, and possibly a program that replaces reachd."""

    def __init__(self, cluster, number, simulate):
        self.name = f"n{number}"
        self.cluster = cluster
        self.folder = os.path.join(cluster.folder, self.name)
        self.run = os.path.join(self.folder, "run")
        self.socket = os.path.join(self.run, "reachd.sock")
        self.simulate = [word for text in simulate for word in ("--simulate", text)]
        self.daemon = None
        self.stand_in = None
        for path in (self.run, os.path.join(self.folder, "spool")):
            os.makedirs(path)
        for gpu in range(cluster.gpus):
            os.mknod(os.path.join(self.folder, f"nvidia{gpu}"), 0o666 | stat.S_IFCHR, os.makedev(1, 3))

    def daemon_start(self, measured=True):
        """Starts reachd. A restarted daemon serves its earlier measurements."""
        self.daemon = common.Daemon(*self.simulate, "--socket", self.socket,
                                    state=os.path.join(self.folder, "reachd.db"))
        self.daemon.socket = self.socket
        if measured:
            self.daemon.measured()
        return self.daemon

    def daemon_stop(self):
        daemon, self.daemon = self.daemon, None
        if daemon:
            if daemon.process.poll() is None:
                daemon.process.send_signal(signal.SIGCONT)
            daemon.stop()

    def freeze(self):
        os.kill(self.daemon.process.pid, signal.SIGSTOP)

    def thaw(self):
        os.kill(self.daemon.process.pid, signal.SIGCONT)

    def stand_in_start(self, answer):
        """Replaces reachd on the socket: answer(connection) owns each connection, and may keep it."""
        self.daemon_stop()
        self.stand_in = StandIn(self.socket, answer)

    def stand_in_stop(self):
        if self.stand_in:
            self.stand_in.close()
        self.stand_in = None

    def log(self):
        with open(os.path.join(self.folder, "slurmd.log"), encoding="utf-8", errors="replace") as log:
            return log.read()

    def uuids(self):
        return [gpu["uuid"] for gpu in self.daemon.gpus()]


class StandIn:
    """Accepts on a Unix socket, each connection in a thread of its own."""

    def __init__(self, path, answer):
        if os.path.exists(path):
            os.unlink(path)
        self.path = path
        self.asked = 0
        self.open = []
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(path)
        self.socket.listen(64)
        self.answer = answer
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            self.asked += 1
            self.open.append(connection)
            threading.Thread(target=self._one, args=(connection,), daemon=True).start()

    def _one(self, connection):
        try:
            self.answer(connection)
        except OSError:
            pass

    def close(self):
        os.unlink(self.path)
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        for connection in self.open:
            connection.close()


class Cluster:
    def __init__(self, simulate=(("k80", "k80"), ("k80", "k80")), plugin_arguments="", more="", gpus=2):
        """Sets `gpus` as the GPUs of each node, whatever reachd reports about them."""
        self.gpus = gpus
        self.folder = tempfile.mkdtemp(prefix="reach-slurm-")
        os.chmod(self.folder, 0o755)
        self.processes = []
        self.nodes = []
        try:
            self._start(simulate, plugin_arguments, more)
        except BaseException:
            self.close()
            raise

    def _start(self, simulate, plugin_arguments, more):
        for name in ("state", "run", "out"):
            os.makedirs(os.path.join(self.folder, name))
        os.chmod(os.path.join(self.folder, "out"), 0o777)
        self.nodes = [Node(self, n, texts) for n, texts in enumerate(simulate, 1)]
        self.write("slurm.conf", CONF.format(folder=self.folder, gpus=self.gpus, more=more))
        self.write("gres.conf", "".join(
            f"NodeName={node.name} Name=gpu File={node.folder}/{file}\n" for node in self.nodes for file in self.files()))
        plugin = os.path.join(os.path.abspath(common.BUILD), "reach_spank.so")
        self.write("plugstack.conf",
                   f"optional {plugin} socket={self.folder}/run/reachd.sock {plugin_arguments}\n")
        self.environment = {**os.environ, "SLURM_CONF": os.path.join(self.folder, "slurm.conf")}
        self._start_munge()
        self.spawn("slurmctld", "slurmctld", "-D")
        for node in self.nodes:
            self.spawn(node.name, "unshare", "--mount", "--", "sh", "-c",
                       f'mount --bind "{node.run}" "{self.folder}/run" && exec slurmd -D -N {node.name}')
        common.until("both nodes are idle", lambda: self.states() == ["idle"] * len(self.nodes))

    def files(self):
        """Returns the device files of each node in the order in which Slurm counts them, as lists of gres.conf."""
        return [f"nvidia[0-{self.gpus - 1}]"]

    def write(self, name, text, mode=0o644):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def _start_munge(self):
        key = os.path.join(self.folder, "munge.key")
        with open(key, "wb") as file:
            file.write(os.urandom(1024))
        os.chmod(key, 0o400)
        self.spawn("munged", "munged", "-F", "--force", "--key-file", key,
                   "--socket", os.path.join(self.folder, "munge.sock"),
                   "--pid-file", os.path.join(self.folder, "munge.pid"),
                   "--log-file", os.path.join(self.folder, "munge.log"),
                   "--seed-file", os.path.join(self.folder, "munge.seed"))
        common.until("munged serves", lambda: os.path.exists(os.path.join(self.folder, "munge.sock")))

    def spawn(self, name, *arguments):
        with open(os.path.join(self.folder, name + ".out"), "wb") as out:
            self.processes.append(subprocess.Popen(arguments, env=self.environment, stdout=out, stderr=out,
                                                   stdin=subprocess.DEVNULL))

    def close(self):
        """Ends all processes of the cluster in reverse order, and removes the folder."""
        for process in reversed(self.processes):
            if process.poll() is None:
                process.terminate()
        for process in reversed(self.processes):
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for pid in self.left():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for node in self.nodes:
            node.stand_in_stop()
            if node.daemon:
                node.daemon.process.kill()
                node.daemon.process.wait()
        if "REACH_KEEP" not in os.environ:
            shutil.rmtree(self.folder, ignore_errors=True)

    def left(self):
        """Returns the process ids that interrupted jobs left behind: a slurmstepd outlives its slurmd, on purpose."""
        mark = f"SLURM_CONF={self.folder}/".encode()
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as environ:
                    if any(entry.startswith(mark) for entry in environ.read().split(b"\0")):
                        found.append(int(pid))
            except OSError:
                continue
        return found

    # ---- clients of Slurm ----

    def command(self, *arguments, user=True, environment=None):
        """Runs a client of Slurm, as the user or as root; returns (exit status, output, errors)."""
        if user:
            who = pwd.getpwnam(USER)
            arguments = ("setpriv", f"--reuid={who.pw_uid}", f"--regid={who.pw_gid}", "--clear-groups",
                         *arguments)
        done = subprocess.run(arguments, env={**self.environment, **(environment or {})}, text=True,
                              capture_output=True, timeout=common.PATIENCE_S, check=False,
                              stdin=subprocess.DEVNULL, cwd=os.path.join(self.folder, "out"))
        return done.returncode, done.stdout, done.stderr

    def srun(self, *arguments, environment=None):
        return self.command("srun", *arguments, environment=environment)

    def sbatch(self, script, *arguments, environment=None):
        """Submits a job and waits for its end. Returns (exit status, output of the job, errors). The status is
        sbatch's if it refuses, else the job's, or the word for its final state."""
        path = self.write(f"out/script-{time.monotonic_ns()}", "#!/bin/sh\n" + script, 0o755)
        out = path + ".txt"
        code, job, errors = self.command("sbatch", "--parsable", "-o", out, *arguments, path,
                                         environment=environment)
        if code != 0:
            return code, "", errors
        state, code = common.until("the job has ended", lambda: self.ended(job.strip()))
        with open(out, encoding="utf-8", errors="replace") as file:
            return (code if state in ("COMPLETED", "FAILED") else state), file.read(), errors

    def ended(self, job):
        """Returns (state, exit status) of a job that is over, else None."""
        _, out, _ = self.command("scontrol", "-o", "show", "job", job, user=False)
        fields = dict(word.split("=", 1) for word in out.split() if "=" in word)
        over = fields.get("JobState") not in (None, "PENDING", "RUNNING", "CONFIGURING", "COMPLETING")
        return over and (fields["JobState"], int(fields["ExitCode"].split(":")[0]))

    def states(self):
        """Returns the state of each node in one word, without the words that only mean that it has work."""
        _, out, _ = self.command("sinfo", "-h", "-N", "-o", "%t", user=False)
        return out.split()

    def reasons(self):
        """Returns the reason why nodes are down or drained, or "" if none is."""
        return self.command("sinfo", "-h", "-R", user=False)[1].strip()


def variables(text):
    """Returns the lines NAME=value of a job that ran env as a dictionary."""
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
