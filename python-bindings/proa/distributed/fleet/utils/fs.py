"""File systems of a job: the local one, and HDFS through the hadoop command."""
import os
import shutil
import subprocess
import time


class ExecuteError(Exception):
    """A command failed."""


class FSFileExistsError(Exception):
    """There is such a file already."""


class FSFileNotExistsError(Exception):
    """There is no such file."""


class FSTimeOut(Exception):
    """A command took too long."""


class FSShellCmdAborted(ExecuteError):
    """A command was aborted."""


class FS:
    """Base of file systems."""

    def need_upload_download(self):
        """Whether files must be brought to this machine to be read."""
        raise NotImplementedError

    def list_dirs(self, fs_path):
        """Names of the folders in a folder."""
        return self.ls_dir(fs_path)[0]

    def _local(self):
        raise NotImplementedError(f"{type(self).__name__}: need_upload_download() is {self.need_upload_download()}: files are "
                                  "copied to and from remote file systems alone")

    def upload(self, local_path, fs_path):
        """Copies a file to a remote file system; others raise NotImplementedError, as in Paddle."""
        self._local()

    def upload_dir(self, local_dir, dest_dir):
        """Copies a folder to a remote file system; others raise NotImplementedError."""
        self._local()

    def download(self, fs_path, local_path):
        """Copies a file from a remote file system; others raise NotImplementedError."""
        self._local()


class LocalFS(FS):
    """This machine's files.

    >>> from proa.distributed.fleet.utils import LocalFS
    >>> LocalFS().is_exist("/no/such/file")
    False
    """

    def ls_dir(self, fs_path):
        """(folders, files) of a folder, by name; two empty lists if there is none."""
        if not self.is_exist(fs_path):
            return [], []
        names = sorted(os.listdir(fs_path))
        folders = [n for n in names if os.path.isdir(os.path.join(fs_path, n))]
        return folders, [n for n in names if n not in folders]

    def mkdirs(self, fs_path):
        """Makes a folder and those above it."""
        assert not os.path.isfile(fs_path), f"{fs_path} is already a file"
        os.makedirs(fs_path, exist_ok=True)

    def rename(self, fs_src_path, fs_dst_path):
        """Renames a file or folder."""
        os.rename(fs_src_path, fs_dst_path)

    def delete(self, fs_path):
        """Deletes a file or folder, if there is one."""
        if os.path.isfile(fs_path) or os.path.islink(fs_path):
            os.remove(fs_path)
        elif os.path.isdir(fs_path):
            shutil.rmtree(fs_path)

    def need_upload_download(self):
        return False

    def is_file(self, fs_path):
        """Whether it is a file."""
        return os.path.isfile(fs_path)

    def is_dir(self, fs_path):
        """Whether it is a folder."""
        return os.path.isdir(fs_path)

    def is_exist(self, fs_path):
        """Whether there is such a file or folder."""
        return os.path.exists(fs_path)

    def touch(self, fs_path, exist_ok=True):
        """Makes an empty file."""
        if self.is_exist(fs_path):
            if exist_ok:
                return
            raise FSFileExistsError(fs_path)
        with open(fs_path, "a"):
            pass

    def mv(self, src_path, dst_path, overwrite=False, test_exists=False):
        """Moves a file or folder; over what is there only if overwrite."""
        if not self.is_exist(src_path):
            raise FSFileNotExistsError(src_path)
        if overwrite and self.is_exist(dst_path):
            self.delete(dst_path)
        if self.is_exist(dst_path):
            raise FSFileExistsError(dst_path)
        self.rename(src_path, dst_path)

    def cat(self, fs_path=None):
        """The text of a file."""
        with open(fs_path) as f:
            return f.read()


class HDFSClient(FS):
    """Files of HDFS: every call runs `hadoop fs`, below hadoop_home, with the configs as -D options."""

    def __init__(self, hadoop_home, configs, time_out=5 * 60 * 1000, sleep_inter=1000):
        self._command = [f"{hadoop_home}/bin/hadoop" if hadoop_home else "hadoop", "fs"]
        self._command += [f"-D{key}={value}" for key, value in (configs or {}).items()]
        self._seconds, self._pause = time_out / 1000, sleep_inter / 1000

    def _run(self, *words, retries=5):
        """(exit status, lines) of a command, tried again while it fails and time is left."""
        end = time.monotonic() + self._seconds
        for attempt in range(retries):
            try:
                done = subprocess.run([*self._command, *words], capture_output=True, text=True,
                                      timeout=max(end - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                raise FSTimeOut(f"hadoop fs {' '.join(words)}: not done within {self._seconds:g} s") from None
            except OSError as e:
                raise ExecuteError(f"hadoop fs: {e}") from None
            if done.returncode in (0, 1) or attempt + 1 == retries:
                return done.returncode, done.stdout.splitlines(), done.stderr
            time.sleep(self._pause)
        return done.returncode, done.stdout.splitlines(), done.stderr

    def _must(self, *words):
        status, lines, error = self._run(*words)
        if status:
            raise ExecuteError(f"hadoop fs {' '.join(words)}: {error.strip()}")
        return lines

    def is_exist(self, fs_path):
        """Whether there is such a file or folder."""
        return self._run("-test", "-e", fs_path, retries=1)[0] == 0

    def is_dir(self, fs_path):
        """Whether it is a folder."""
        return self._run("-test", "-d", fs_path, retries=1)[0] == 0

    def is_file(self, fs_path):
        """Whether it is a file."""
        return self.is_exist(fs_path) and not self.is_dir(fs_path)

    def ls_dir(self, fs_path):
        """(folders, files) of a folder."""
        if not self.is_exist(fs_path):
            return [], []
        folders, files = [], []
        for line in self._must("-ls", fs_path):
            words = line.split()
            if len(words) == 8:
                (folders if words[0].startswith("d") else files).append(os.path.basename(words[7]))
        return folders, files

    def mkdirs(self, fs_path):
        """Makes a folder and those above it."""
        self._must("-mkdir", "-p", fs_path)

    def list_files_info(self, path_list):
        """Path and size, in bytes, of the files that the paths name or hold: a list of dicts."""
        if not path_list:
            return []
        found = [line.split(None, 7) for line in self._must("-ls", *path_list)]
        return [{"path": words[7], "size": int(words[4])} for words in found if len(words) == 8]

    def delete(self, fs_path):
        """Deletes a file or folder, if there is one."""
        if self.is_exist(fs_path):
            self._must("-rm", "-r", "-f", fs_path)

    def touch(self, fs_path, exist_ok=True):
        """Makes an empty file."""
        if self.is_exist(fs_path):
            if exist_ok:
                return
            raise FSFileExistsError(fs_path)
        self._must("-touchz", fs_path)

    def mv(self, fs_src_path, fs_dst_path, overwrite=False, test_exists=True):
        """Moves a file or folder."""
        if overwrite and self.is_exist(fs_dst_path):
            self.delete(fs_dst_path)
        if test_exists and not self.is_exist(fs_src_path):
            raise FSFileNotExistsError(f"{fs_src_path} is not exists")
        if test_exists and self.is_exist(fs_dst_path):
            raise FSFileExistsError(f"{fs_dst_path} exists already")
        self._must("-mv", fs_src_path, fs_dst_path)

    rename = mv

    def upload(self, local_path, fs_path, multi_processes=5, overwrite=False):
        """Copies a file or folder to HDFS."""
        if not os.path.exists(local_path):
            raise FSFileNotExistsError(f"{local_path} not exists")
        if overwrite:
            self.delete(fs_path)
        self._must("-put", local_path, fs_path)

    def upload_dir(self, local_dir, dest_dir, overwrite=False):
        """Copies a folder into a folder of HDFS; over one of its name only if overwrite."""
        there = os.path.join(dest_dir.rstrip("/"), os.path.basename(local_dir.rstrip("/")))
        if overwrite:
            self.delete(there)
        self.mkdirs(dest_dir)
        self._must("-put", local_dir.rstrip("/"), dest_dir)

    def download(self, fs_path, local_path, multi_processes=5, overwrite=False):
        """Copies a file or folder from HDFS."""
        if not self.is_exist(fs_path):
            raise FSFileNotExistsError(f"{fs_path} not exits")
        if overwrite and os.path.exists(local_path):
            LocalFS().delete(local_path)
        self._must("-get", fs_path, local_path)

    def cat(self, fs_path=None):
        """The text of a file; "" if there is none."""
        return "\n".join(self._must("-cat", fs_path)) if self.is_file(fs_path) else ""

    def need_upload_download(self):
        return True
