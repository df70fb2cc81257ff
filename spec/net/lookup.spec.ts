import { promises } from 'node:dns';
import * as assert from 'uvu/assert';
import { lookupOutside } from '../../src/net/lookup.ts';
import { suite } from '../helpers/suite.ts';
import { startDns } from './dns-server.ts';

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
