import { createSocket } from 'node:dgram';
import { promises } from 'node:dns';
import { once } from 'node:events';
import * as assert from 'uvu/assert';
import { lookupOutside } from '../../../src/auth/issuers/outside-lookup.ts';
import { suite } from '../../helpers/suite.ts';

/** A DNS server that knows `known.test` as 192.0.2.7, and gives no answer for names that begin with `slow`. */
async function startDns() {
  const socket = createSocket('udp4');
  const names: string[] = [];
  socket.on('message', (asked, { address, port }) => {
    const end = asked.indexOf(0, 12);
    const name = asked.toString('latin1', 13, end);
    names.push(name);
    if (name.startsWith('slow')) return;
    const isIPv4 = asked.readUInt16BE(end + 1) === 1;
    const header = Buffer.from([...asked.subarray(0, 2), 0x81, 0x80, 0, 1, 0, isIPv4 ? 1 : 0, 0, 0, 0, 0]);
    const answer = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, 192, 0, 2, 7]);
    const question = asked.subarray(12, end + 5);
    socket.send(Buffer.concat([header, question, ...(isIPv4 ? [answer] : [])]), port, address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return { servers: [`127.0.0.1:${socket.address().port}`], names, close: () => socket.close() };
}

const lookups = suite('look-ups of names that outsiders chose');

lookups('names whose DNS server never answers hold no thread, and end', async () => {
  const dns = await startDns();
  try {
    const slow = Array.from({ length: 40 }, (_, index) =>
      lookupOutside(`slow-${index}.test`, { servers: dns.servers }).then(
        () => 'found',
        () => 'ended',
      ),
    );
    // Two threads of the process are for look-ups: this one would wait for 20 others.
    assert.ok((await promises.lookup('localhost', { all: true })).length > 0);
    assert.equal(await lookupOutside('known.test', { servers: dns.servers }), [
      { address: '192.0.2.7', family: 4 },
    ]);
    assert.is(await Promise.race([Promise.any(slow), 'none ended yet']), 'none ended yet');
    assert.equal([...new Set(await Promise.all(slow))], ['ended']);
  } finally {
    dns.close();
  }
});

lookups('names in the file of hosts are no matter of DNS servers', async () => {
  const dns = await startDns();
  try {
    const found = await lookupOutside('localhost', { family: 4, servers: dns.servers });
    assert.equal(found, [{ address: '127.0.0.1', family: 4 }]);
    assert.equal(dns.names, []);
  } finally {
    dns.close();
  }
});

lookups.run();
