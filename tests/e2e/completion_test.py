"""Completion in real shells: keys are typed at a terminal, and the completed line is run."""

import os
import pty
import re
import subprocess
import unittest

import adamant

TAB = "\t"
READY = "ready to type"


class Shell:
    """A shell at a terminal of its own, in which `adamant` only says how it was called."""

    def __init__(self, folder, program, *arguments, setup):
        self._leader, follower = pty.openpty()
        self._process = subprocess.Popen([program, *arguments], stdin=follower, stdout=follower, stderr=follower,
                                         cwd=folder, start_new_session=True,
                                         env={"HOME": str(folder), "PATH": os.environ["PATH"], "TERM": "dumb"})
        os.close(follower)
        self._shown = ""
        self._type(f"{setup}; echo 'ready' to 'type'\n")
        self._await(READY)

    def _type(self, keys):
        os.write(self._leader, keys.encode())

    def _await(self, pattern):
        """What the terminal shows next that matches."""
        while not (found := re.search(pattern, self._shown)):
            self._shown += os.read(self._leader, 65536).decode()  # the test's time limit ends what hangs
        self._shown = self._shown[found.end():]
        return found

    def run(self, keys):
        """The words that `adamant` is called with when these keys are typed, and then Enter."""
        self._type(f"adamant {keys}\n")
        return self._await(r"called(( <[^>\r\n]*>)*) \.\r?\n")[1].strip()

    def close(self):
        self._process.kill()
        self._process.wait()
        os.close(self._leader)


class CompletionTest(adamant.TestCase):

    def setUp(self):
        super().setUp()
        (self.folder / "my job.yaml").touch()
        (self.folder / "other.yaml").touch()
        (self.folder / "first.yaml").touch()
        (self.folder / "first run").mkdir()

    def script(self, shell):
        return adamant.adamant("completion", shell).stdout

    def assert_completes(self, shell):
        for keys, words in {
                f"tra{TAB}oth{TAB}": "<train> <other.yaml>",
                f"train m{TAB}": "<train> <my job.yaml>",
                f"train oth{TAB}--outp{TAB}j{TAB}": "<train> <other.yaml> <--output> <json>",
                f"train --output=te{TAB}": "<train> <--output=text>",
                f"train --run-d{TAB}fir{TAB}": "<train> <--run-dir> <first run>",
                f"train --res{TAB}fir{TAB}": "<train> <--resume> <first run>",
                f"status fir{TAB}": "<status> <first run>",
                f"data d{TAB}--see{TAB}": "<data> <digits> <--seed>",
                f"export fir{TAB} --form{TAB}s{TAB}": "<export> <first run> <--format> <safetensors>",
                f"status --outp{TAB}t{TAB}": "<status> <--output> <text>",
                f"completion z{TAB}": "<completion> <zsh>",
                f"help val{TAB}": "<help> <validate>",
                f"--vers{TAB}": "<--version>",
                f"save-{TAB}": "<save->",  # what is for pods is not offered
                f"serve-{TAB}": "<serve->"}.items():
            with self.subTest(keys):
                self.assertEqual(shell.run(keys).replace("/>", ">"), words)

    def shell(self, *arguments, setup):
        shell = Shell(self.folder, *arguments, setup=setup)
        self.addCleanup(shell.close)
        return shell

    def test_bash(self):
        (self.folder / ".script").write_text(self.script("bash"))
        self.assert_completes(self.shell(
            "bash", "--norc", "--noprofile", "-i",
            setup="source .script; adamant() { printf called; printf ' <%s>' \"$@\"; echo ' .'; }"))

    def test_zsh_with_the_script_in_a_folder_of_functions(self):
        functions = self.folder / ".zfunc"
        functions.mkdir()
        (functions / "_adamant").write_text(self.script("zsh"))
        (self.folder / ".zshrc").write_text("fpath=(~/.zfunc $fpath); autoload -U compinit; compinit -u\n")
        self.assert_completes(self.shell(
            "zsh", "-d", "-i", setup="adamant() { printf called; printf ' <%s>' \"$@\"; echo ' .' }"))

    def test_zsh_that_has_sourced_the_script(self):
        (self.folder / ".script").write_text(self.script("zsh"))
        (self.folder / ".zshrc").write_text("autoload -U compinit; compinit -u; source ~/.script\n")
        shell = self.shell("zsh", "-d", "-i", setup="adamant() { printf called; printf ' <%s>' \"$@\"; echo ' .' }")
        self.assertEqual(shell.run(f"tra{TAB}--outp{TAB}j{TAB}"), "<train> <--output> <json>")


if __name__ == "__main__":
    unittest.main()
