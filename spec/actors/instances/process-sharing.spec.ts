// Which conversation takes the request of a client without a session, and which requests are about tasks.

import * as assert from 'uvu/assert';
import {
  type ConversationChoice,
  conversationFor,
  isAboutTask,
} from '../../../src/actors/instances/process-sharing.ts';
import type { TemplatePolicy } from '../../../src/balancing/policy.ts';
import type { TransportKind } from '../../../src/domain/instances/transport-kinds.ts';
import type { Era } from '../../../src/domain/mcp/mcp.ts';
import { ASKABLE, definition, modernProfile } from '../../helpers/backends/profiles.ts';
import { HANDSHAKE } from '../../helpers/backends/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('process sharing');
type Client =
  | 'quiet'
  | 'askable'
  | 'logging'
  | 'listing'
  | 'tools'
  | 'same tools'
  | 'task'
  | 'apps'
  | 'apps listing'
  | 'askable apps'
  | 'apps logging'
  | 'empty';
const rows: readonly [
  Era | 'none',
  TransportKind,
  TemplatePolicy['processSharing'],
  Client,
  ConversationChoice,
][] = [
  ['modern', 'http', 'isolated', 'askable', 'direct'],
  ['none', 'http', 'auto', 'askable', 'direct'],
  ['bare', 'http', 'isolated', 'askable', 'transport'],
  ['legacy', 'in-process', 'isolated', 'askable', 'transport'],
  ['legacy', 'http', 'shared', 'quiet', 'dedicated'],
  ['legacy', 'sse', 'auto', 'quiet', 'dedicated'],
  ['legacy', 'stdio', 'auto', 'quiet', 'transport'],
  ['legacy', 'stdio', 'auto', 'askable', 'dedicated'],
  ['legacy', 'stdio', 'auto', 'logging', 'dedicated'],
  ['legacy', 'stdio', 'auto', 'listing', 'transport'],
  ['legacy', 'stdio', 'isolated', 'listing', 'dedicated'],
  ['legacy', 'http', 'auto', 'listing', 'dedicated'],
  ['legacy', 'stdio', 'auto', 'tools', 'dedicated'],
  ['legacy', 'stdio', 'auto', 'same tools', 'transport'],
  ['legacy', 'stdio', 'shared', 'tools', 'transport'],
  ['legacy', 'stdio', 'isolated', 'same tools', 'dedicated'],
  ['legacy', 'stdio', 'auto', 'task', 'dedicated'],
  ['legacy', 'stdio', 'isolated', 'task', 'dedicated'],
  ['legacy', 'stdio', 'shared', 'task', 'noTasks'],
  ['legacy', 'http', 'shared', 'task', 'dedicated'],
  ['legacy', 'in-process', 'shared', 'task', 'transport'],
  ['modern', 'stdio', 'shared', 'task', 'direct'],
  ['legacy', 'stdio', 'auto', 'apps', 'equalExtensions'],
  ['legacy', 'stdio', 'auto', 'apps listing', 'equalExtensions'],
  ['legacy', 'stdio', 'auto', 'askable apps', 'dedicated'],
  ['legacy', 'stdio', 'auto', 'apps logging', 'dedicated'],
  ['legacy', 'stdio', 'auto', 'empty', 'transport'],
  ['legacy', 'stdio', 'shared', 'apps', 'transport'],
  ['legacy', 'stdio', 'isolated', 'apps', 'dedicated'],
  ['legacy', 'http', 'auto', 'apps', 'dedicated'],
  ['legacy', 'in-process', 'auto', 'apps', 'transport'],
  ['modern', 'stdio', 'auto', 'apps', 'direct'],
];
const METHOD_OF: Readonly<Record<Client, string>> = {
  quiet: 'tools/call',
  askable: 'tools/call',
  logging: 'tools/call',
  listing: 'resources/templates/list',
  tools: 'tools/list',
  'same tools': 'tools/list',
  task: 'tasks/get',
  apps: 'tools/call',
  'apps listing': 'resources/list',
  'askable apps': 'tools/list',
  'apps logging': 'tools/call',
  empty: 'tools/call',
};
const QUIET: readonly Client[] = ['quiet', 'logging', 'task'];
const APPS = { extensions: { 'io.modelcontextprotocol/ui': {} } };

function profileOf(client: Client) {
  if (QUIET.includes(client)) return modernProfile();
  if (client === 'empty') return modernProfile({ extensions: {}, experimental: {} });
  if (client === 'askable apps') return modernProfile({ ...ASKABLE.capabilities, experimental: { a: {} } });
  return client.startsWith('apps') ? modernProfile(APPS) : ASKABLE;
}

for (const [era, transport, sharing, client, way] of rows) {
  test(`is ${way}: ${era}, ${transport}, ${sharing}, ${client}`, () => {
    const handshake = era === 'none' ? undefined : { ...HANDSHAKE, era };
    const input = {
      sharing,
      profile: profileOf(client),
      request: { method: METHOD_OF[client] },
      logLevel: ['logging', 'listing', 'apps logging'].includes(client) ? 'info' : undefined,
      hasEqualTools: client === 'same tools' || client === 'askable apps',
    };
    const found = conversationFor(
      { handshake, lastHandshake: undefined, definition: definition('a', { transport }) },
      input,
    );
    assert.is(found, way);
  });
}

test('uses the last known handshake while none is connected, as a dedicated process may still exist', () => {
  const gone = {
    handshake: undefined,
    lastHandshake: HANDSHAKE,
    definition: definition('a', { transport: 'stdio' }),
  };
  const input = {
    sharing: 'auto',
    profile: modernProfile(),
    request: { method: 'tasks/get' },
    logLevel: undefined,
    hasEqualTools: false,
  } as const;
  assert.is(conversationFor(gone, input), 'dedicated');
});

test('requests about tasks are the tasks/ methods, and tool calls with a task', () => {
  for (const method of ['tasks/get', 'tasks/list', 'tasks/result', 'tasks/cancel'])
    assert.ok(isAboutTask({ method }));
  assert.ok(isAboutTask({ method: 'tools/call', params: { name: 'write', task: { ttl: 1 } } }));
  assert.not.ok(isAboutTask({ method: 'tools/call', params: { name: 'task' } }));
  for (const method of ['tools/call', 'tools/list', 'tasks']) assert.not.ok(isAboutTask({ method }));
});

test.run();
