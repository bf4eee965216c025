#!/usr/bin/env python3
"""The harness does what it says: namespaces, cut ways, the proxy, and nothing left behind."""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import netns

PORT = 7000
PATIENCE = 5  # seconds for what must happen
SILENCE = 0.3  # seconds for what must not


class Receiver:
    """UDP in one node."""

    def __init__(self, network, node):
        self._network = network
        self._socket = network.socket(node, socket.SOCK_DGRAM)
        self._socket.bind((network.address(node), PORT))
        self.address = self._socket.getsockname()

    def hears(self, node):
        """Whether a datagram from the node arrives."""
        with self._network.socket(node, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"hello", self.address)
        self._socket.settimeout(SILENCE)
        try:
            return self._socket.recv(16) == b"hello"
        except TimeoutError:
            return False

    def close(self):
        self._socket.close()


class NetworkTest(unittest.TestCase):
    def setUp(self):
        self.network = self.enterContext(netns.Network(["a", "b", "c"]))
        self.receivers = {node: Receiver(self.network, node) for node in "abc"}
        for receiver in self.receivers.values():
            self.addCleanup(receiver.close)

    def ways(self):
        """The ways that are open, as "ab": from a to b."""
        return {a + b for a in "abc" for b in "abc" if a != b and self.receivers[b].hears(a)}

    ALL = {"ab", "ac", "ba", "bc", "ca", "cb"}

    def test_nodes_reach_each_other(self):
        self.assertEqual(self.ways(), self.ALL)

    def test_drop_cuts_one_way_only(self):
        self.network.drop("a", "b")
        self.assertEqual(self.ways(), self.ALL - {"ab"})
        self.network.restore("a", "b")
        self.assertEqual(self.ways(), self.ALL)

    def test_cut_cuts_both_ways_between_two(self):
        self.network.cut("a", "b")
        self.assertEqual(self.ways(), self.ALL - {"ab", "ba"})

    def test_isolated_node_reaches_nobody_until_healed(self):
        self.network.isolate("b")
        self.network.drop("a", "c")
        self.assertEqual(self.ways(), {"ca"})
        self.network.heal()
        self.assertEqual(self.ways(), self.ALL)

    def test_flapping_way_is_cut_and_whole_in_turns_and_whole_in_the_end(self):
        heard = set()
        deadline = time.monotonic() + PATIENCE
        with self.network.flapping("a", "b", cut_seconds=0.4, whole_seconds=0.4):
            while heard != {True, False} and time.monotonic() < deadline:
                heard.add(self.receivers["b"].hears("a"))
                self.assertTrue(self.receivers["a"].hears("b"))
        self.assertEqual(heard, {True, False})
        self.assertEqual(self.ways(), self.ALL)

    def test_program_runs_in_its_node(self):
        shown = self.network.start("c", "ip", "-brief", "address", stdout=subprocess.PIPE, text=True)
        output, _ = shown.communicate(timeout=PATIENCE)
        self.assertIn(self.network.address("c"), output)
        self.assertNotIn(self.network.address("a"), output)


class EchoServer:
    """TCP in one node: sends back what it gets, and remembers it, by connection."""

    def __init__(self, network, node):
        self._listener = network.socket(node, socket.SOCK_STREAM)
        self._listener.bind((network.address(node), PORT))
        self._listener.listen()
        self.address = self._listener.getsockname()
        self.received = []  # per connection
        self.order = []  # of the connections' first bytes
        self.resets = 0
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.received.append(bytearray())
            self._threads.append(threading.Thread(target=self._echo, args=(connection, self.received[-1])))
            self._threads[-1].start()

    def _echo(self, connection, received):
        with connection:
            try:
                while piece := connection.recv(1 << 16):
                    if not received:
                        self.order.append(piece[:1])
                    received += piece
                    connection.sendall(piece)
            except ConnectionResetError:
                self.resets += 1
            except BrokenPipeError:
                pass

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()


class ProxyTest(unittest.TestCase):
    def setUp(self):
        self.network = self.enterContext(netns.Network(["client", "server"]))
        self.server = EchoServer(self.network, "server")
        self.addCleanup(self.server.close)
        self.proxy = self.network.proxy("client")

    def connect(self):
        connection = self.network.socket("client", socket.SOCK_STREAM)
        self.addCleanup(connection.close)
        connection.settimeout(PATIENCE)
        connection.connect(self.server.address)
        return connection

    def await_that(self, condition):
        deadline = time.monotonic() + PATIENCE
        while not condition() and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertTrue(condition())

    def round_trip(self, connection, content=b"x"):
        """Seconds until the content is back."""
        begin = time.monotonic()
        sender = threading.Thread(target=connection.sendall, args=(content,))
        sender.start()
        back = bytearray()
        while len(back) < len(content):
            back += connection.recv(1 << 16)
        sender.join()
        self.assertEqual(bytes(back), content)
        return time.monotonic() - begin

    def assert_silent(self, connection):
        connection.settimeout(SILENCE)
        with self.assertRaises(TimeoutError):
            connection.recv(1)
        connection.settimeout(PATIENCE)

    def test_forwards_everything_and_the_end(self):
        connection = self.connect()
        self.round_trip(connection, os.urandom(3_000_000))
        connection.shutdown(socket.SHUT_WR)
        self.assertEqual(connection.recv(1), b"")
        self.await_that(lambda: self.proxy.stats()["open"] == 0)
        self.assertEqual(self.proxy.stats(),
                         {"connections": 1, "open": 0, "bytes": 6_000_000, "resets": 0, "duplicated": 0})

    def test_delays_each_way_also_of_open_connections(self):
        connection = self.connect()
        self.assertLess(self.round_trip(connection), 0.2)
        self.proxy.set("server", delay_up=200)
        self.assertGreaterEqual(self.round_trip(connection), 0.2)
        self.proxy.set("server", delay_up=200, delay_down=100)
        self.assertGreaterEqual(self.round_trip(connection), 0.3)
        self.proxy.set("server")
        self.assertLess(self.round_trip(connection), 0.2)

    def test_jitter_keeps_the_order_within_a_connection(self):
        self.proxy.set(jitter=20)
        connection = self.connect()
        content = b""
        for number in range(50):
            piece = number.to_bytes(2, "big")
            connection.sendall(piece)
            content += piece
            time.sleep(0.002)
        back = b""
        while len(back) < len(content):
            back += connection.recv(4096)
        self.assertEqual(back, content)

    def test_spread_lets_connections_overtake_each_other(self):
        self.proxy.set(spread=500)
        connections = [self.connect() for _ in range(8)]
        sent = [bytes([number]) for number in range(8)]
        for connection, name in zip(connections, sent):
            connection.sendall(name)
        self.await_that(lambda: len(self.server.order) == 8)
        self.assertCountEqual(self.server.order, sent)
        self.assertNotEqual(self.server.order, sent)

    def test_rate_is_limited(self):
        self.proxy.set(rate_up=2_000_000)
        seconds = self.round_trip(self.connect(), bytes(1_000_000))
        self.assertGreaterEqual(seconds, 0.45)
        self.assertLess(seconds, 5)

    def test_reset_is_seen_at_both_ends(self):
        connection = self.connect()
        self.round_trip(connection)
        self.proxy.reset("server")
        with self.assertRaises(ConnectionResetError):
            connection.recv(1)
        self.await_that(lambda: self.server.resets == 1)

    def test_connections_are_reset_after_a_random_time(self):
        self.proxy.set(reset_after=100)
        connection = self.connect()
        with self.assertRaises(ConnectionResetError):
            connection.recv(1)
        self.assertEqual(self.proxy.stats()["resets"], 1)

    def test_stalled_connection_goes_on_when_released(self):
        connection = self.connect()
        self.round_trip(connection)
        self.proxy.set("server", hold=1)
        connection.sendall(b"late")
        self.assert_silent(connection)
        self.proxy.set("server")
        self.assertEqual(connection.recv(4), b"late")

    def test_new_connection_is_half_open_while_stalled(self):
        self.proxy.set(hold=1)
        connection = self.connect()
        connection.sendall(b"x")
        self.assert_silent(connection)
        self.proxy.reset()
        with self.assertRaises(ConnectionResetError):
            connection.recv(1)

    def test_duplicated_connection_says_the_same_later_and_is_not_answered(self):
        self.proxy.set(duplicate=1, duplicate_delay=200)
        connection = self.connect()
        self.round_trip(connection, b"once")
        self.await_that(lambda: len(self.server.received) == 2)
        self.await_that(lambda: self.server.received[0] == self.server.received[1] == b"once")
        self.assert_silent(connection)
        self.assertEqual(self.proxy.stats()["duplicated"], 1)

    def test_unknown_behaviour_is_refused(self):
        with self.assertRaisesRegex(ValueError, "not a behaviour: \"speed=1\""):
            self.proxy.set(speed=1)

    def test_connection_beyond_a_cut_way_stays_silent(self):
        self.network.cut("client", "server")
        connection = self.connect()
        connection.sendall(b"x")
        self.assert_silent(connection)


# Run as a program of its own by the test below: says what it started, and waits.
FORSAKEN = """
import sys, time
sys.path.insert(0, {folder!r})
import netns, unittest

class Test(unittest.TestCase):
    def test(self):
        with netns.Network(["a"]) as network:
            sleeper = network.start("a", "sleep", {mark!r})
            print("started", flush=True)
            time.sleep(60)

netns.main()
"""


class CleanUpTest(unittest.TestCase):
    @staticmethod
    def runs(word):
        """Whether a process has this word on its command line."""
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if word.encode() in path.read_bytes().split(b"\0"):
                    return True
            except (FileNotFoundError, ProcessLookupError):
                pass
        return False

    def await_running(self, word, wanted):
        deadline = time.monotonic() + PATIENCE
        # One look decides: /proc shows a process without its command line while it turns from nsenter into its command.
        while self.runs(word) != wanted:
            self.assertLess(time.monotonic(), deadline, f"{word} {'never ran' if wanted else 'runs on'}")
            time.sleep(0.01)

    def test_nothing_runs_on_when_a_test_is_killed(self):
        mark = "61.25"
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "forsaken.py"
            program.write_text(FORSAKEN.format(folder=str(pathlib.Path(netns.__file__).parent), mark=mark))
            environment = {key: value for key, value in os.environ.items() if key != netns.INSIDE}
            child = subprocess.Popen([sys.executable, program], env=environment, stdout=subprocess.PIPE, text=True)
            self.assertEqual(child.stdout.readline(), "started\n")
            self.addCleanup(child.stdout.close)
            self.await_running(mark, True)
            child.send_signal(signal.SIGKILL)
            child.wait()
        self.await_running(mark, False)


if __name__ == "__main__":
    netns.main()
