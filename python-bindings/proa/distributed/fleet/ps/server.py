"""A parameter server's process."""
import os

from .... import _core

_LOOK = 0.2  # seconds between two looks at Python's signals


class Server:
    """Tables in this process; workers wait until it runs."""

    def __init__(self, job, role_maker):
        endpoints, index = role_maker._get_pserver_endpoints(), role_maker._server_index()
        host, _, port = endpoints[index].rpartition(":")
        self._server, self.port = _core.ps_serve(host, int(port), index, len(endpoints), role_maker._worker_num())
        self._tables = {}
        for table in job.tables if job else ():
            _core.ps_server_table(self._server, table.number, table.options)
            self._tables[table.name] = table

    def load(self, dirname, var_names=None):
        """Reads rows of sparse tables: those of var_names, else all that the folder has."""
        if not os.path.isdir(dirname):
            raise FileNotFoundError(f"fleet.init_server: there is no folder {dirname!r} on this server's machine; expected one that "
                                    "fleet.save_persistables wrote")
        sparse = {name: t for name, t in self._tables.items() if not t.dense}
        for name in var_names if var_names is not None else sparse:
            if name not in sparse:
                raise ValueError(f"fleet.init_server: {name!r} is no sparse table; there are {sorted(sparse)}")
            if var_names is not None or os.path.isdir(os.path.join(dirname, name + "_txt")):
                _core.ps_server_load(self._server, sparse[name].number, dirname)

    def run(self):
        """Lets workers in, and serves until a client stops the servers or a signal ends the process."""
        _core.ps_server_open(self._server)
        while not _core.ps_server_wait(self._server, _LOOK):
            pass
        _core.ps_server_end(self._server)
        self._server = None
