// A DNS server that is silent about some names.

import { createSocket } from 'node:dgram';
import { once } from 'node:events';

/** A DNS server that knows `known.test` as 192.0.2.7, and gives no answer for names that `silent` matches: those that begin with `slow`. */
export async function startDns() {
  const socket = createSocket('udp4');
  const names: string[] = [];
  const dns = { silent: /^slow/ };
  socket.on('message', (asked, { address, port }) => {
    const end = asked.indexOf(0, 12);
    const name = asked.toString('latin1', 13, end);
    names.push(name);
    if (dns.silent.test(name)) return;
    const isIPv4 = asked.readUInt16BE(end + 1) === 1;
    const header = Buffer.from([...asked.subarray(0, 2), 0x81, 0x80, 0, 1, 0, isIPv4 ? 1 : 0, 0, 0, 0, 0]);
    const answer = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, 192, 0, 2, 7]);
    const question = asked.subarray(12, end + 5);
    socket.send(Buffer.concat([header, question, ...(isIPv4 ? [answer] : [])]), port, address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const own = { servers: [`127.0.0.1:${socket.address().port}`], names, close: () => socket.close() };
  return Object.assign(dns, own);
}
