#!/usr/bin/env python3
"""Takes connections of an inherited listening socket and forwards them to an address. The socket stays in the network
it was made in, while new connections start in the network that this program runs in: a way into a machine's network.

usage: forward.py DESCRIPTOR ADDRESS PORT
"""

import asyncio
import contextlib
import socket
import sys


async def copy(reader, writer):
    try:
        while piece := await reader.read(1 << 16):
            writer.write(piece)
            await writer.drain()
        writer.write_eof()
    except OSError:
        writer.close()


async def forward(reader, writer, address, port):
    with contextlib.closing(writer):
        try:
            far_reader, far_writer = await asyncio.open_connection(address, port)
        except OSError:
            return
        with contextlib.closing(far_writer):
            await asyncio.gather(copy(reader, far_writer), copy(far_reader, writer))


async def main():
    descriptor, address, port = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    server = await asyncio.start_server(lambda reader, writer: forward(reader, writer, address, port),
                                        sock=socket.socket(fileno=descriptor))
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
