// The table of ways.

import * as assert from 'uvu/assert';
import { type Routing, routingTo } from '../../../src/actors/stateless/stateless-routing.ts';
import type { TransportKind } from '../../../src/domain/instance.ts';
import type { Era } from '../../../src/domain/mcp.ts';
import type { SessionSharing } from '../../../src/domain/policy.ts';
import { PEER } from '../../helpers/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';
import { definition } from '../instances/instance-stage.ts';
import { ASKABLE, profile } from './guest-stage.ts';

const test = suite('the way to an instance');

type Client = 'quiet' | 'askable' | 'logging' | 'listing' | 'tools' | 'same tools' | 'task';

const rows: readonly [Era | 'nobody', TransportKind, SessionSharing, Client, Routing][] = [
  ['modern', 'http', 'isolated', 'askable', 'plain'],
  ['modern', 'stdio', 'auto', 'logging', 'plain'],
  ['nobody', 'http', 'auto', 'askable', 'plain'],
  ['bare', 'http', 'isolated', 'askable', 'shared'],
  ['legacy', 'in-process', 'isolated', 'askable', 'shared'],
  ['legacy', 'http', 'shared', 'quiet', 'guest'],
  ['legacy', 'sse', 'auto', 'quiet', 'guest'],
  ['legacy', 'stdio', 'auto', 'quiet', 'shared'],
  ['legacy', 'stdio', 'auto', 'askable', 'guest'],
  ['legacy', 'stdio', 'auto', 'logging', 'guest'],
  ['legacy', 'stdio', 'isolated', 'quiet', 'guest'],
  ['legacy', 'stdio', 'shared', 'askable', 'shared'],
  ['legacy', 'stdio', 'auto', 'listing', 'shared'],
  ['legacy', 'stdio', 'isolated', 'listing', 'guest'],
  ['legacy', 'http', 'auto', 'listing', 'guest'],
  ['legacy', 'stdio', 'auto', 'tools', 'guest'],
  ['legacy', 'stdio', 'auto', 'same tools', 'shared'],
  ['legacy', 'stdio', 'shared', 'tools', 'shared'],
  ['legacy', 'stdio', 'isolated', 'same tools', 'guest'],
  ['modern', 'stdio', 'auto', 'tools', 'plain'],
  ['legacy', 'stdio', 'auto', 'task', 'guest'],
  ['legacy', 'stdio', 'isolated', 'task', 'guest'],
  ['legacy', 'stdio', 'shared', 'task', 'refused'],
  ['legacy', 'http', 'shared', 'task', 'guest'],
  ['legacy', 'in-process', 'shared', 'task', 'shared'],
  ['modern', 'stdio', 'shared', 'task', 'plain'],
];
const METHOD_OF: Readonly<Record<Client, string>> = {
  quiet: 'tools/call',
  askable: 'tools/call',
  logging: 'tools/call',
  listing: 'resources/templates/list',
  tools: 'tools/list',
  'same tools': 'tools/list',
  task: 'tasks/get',
};
for (const [era, transport, sharing, client, way] of rows) {
  test(`is ${way}: ${era}, ${transport}, ${sharing}, ${client}`, () => {
    const peer = era === 'nobody' ? undefined : { ...PEER, era };
    const facts = {
      sharing,
      profile: ['quiet', 'logging', 'task'].includes(client) ? profile() : ASKABLE,
      request: { method: METHOD_OF[client] },
      logLevel: client === 'logging' || client === 'listing' ? 'info' : undefined,
      listsAlike: client === 'same tools',
    };
    assert.is(routingTo({ peer, lastPeer: undefined, definition: definition({ transport }) }, facts), way);
  });
}

test('is that of who was there last while nobody is: a process of the guest may be there all the same', () => {
  const gone = { peer: undefined, lastPeer: PEER, definition: definition({ transport: 'stdio' }) };
  const facts = {
    sharing: 'auto',
    profile: profile(),
    request: { method: 'tasks/get' },
    logLevel: undefined,
    listsAlike: false,
  } as const;
  assert.is(routingTo(gone, facts), 'guest');
});

test.run();
