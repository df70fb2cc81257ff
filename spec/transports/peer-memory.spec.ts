// One object for equal peers, and only so many of them.

import * as assert from 'uvu/assert';
import type { Peer } from '../../src/domain/mcp.ts';
import { PeerMemory } from '../../src/transports/http/http-openings.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('peer memory');

const peerOf = (serverName: string): Peer => ({
  era: 'legacy',
  protocolVersion: '2025-11-25',
  serverName,
  serverVersion: '1',
  capabilities: { tools: {} },
  greeting: { instructions: serverName },
});

test('gives the first object for every equal one', () => {
  const memory = new PeerMemory();
  const first = peerOf('one');
  assert.is(memory.intern(first), first);
  assert.is(memory.intern(peerOf('one')), first);
  const other = peerOf('other');
  assert.is(memory.intern(other), other);
});

test('forgets the one that was not heard for longest', () => {
  const memory = new PeerMemory();
  const first = memory.intern(peerOf('first'));
  const second = memory.intern(peerOf('second'));
  for (let number = 0; number < 14; number += 1) memory.intern(peerOf(`${number}`));
  assert.is(memory.intern(peerOf('first')), first);
  memory.intern(peerOf('one too many'));
  assert.is(memory.intern(peerOf('first')), first);
  assert.is.not(memory.intern(peerOf('second')), second);
});

test.run();
