// How the table of transports is used, and what is remembered from one opening to the next.

import * as assert from 'uvu/assert';
import type { InstanceDefinition } from '../../src/domain/instance.ts';
import { openingWith } from '../../src/transports/opening.ts';
import type { TransportDiagnostics } from '../../src/transports/transport.ts';
import { instanceDefinition, openOptions, refusal, until } from '../conformance/transport.ts';
import { suite } from '../helpers/suite.ts';
import { fixture, node, withStarts } from './stdio/open-stdio.ts';

const test = suite('opening', { timeoutMs: 30_000 });

test('opens the transport of the definition, with the fields that `launch` returns', async () => {
  const { signal, ...options } = openOptions({ handlers: new Map([['launched', () => ({})]]) });
  const open = openingWith({ ...options, launch: (definition) => ({ ...definition, serverId: 'launched' }) });
  const definition = { ...instanceDefinition({}), transport: 'in-process', serverId: 'registered' } as const;
  const transport = await open(definition, signal);
  assert.is(transport.kind, 'in-process');
  await transport.close();
});

test('remembers what was learned of an instance as long as its definition object exists', () =>
  withStarts(async (counted, starts) => {
    const { signal, ...options } = openOptions();
    const program = counted(fixture('--before-initialize=exit'));
    const open = openingWith({ ...options, launch: (definition) => ({ ...definition, ...program }) });
    const startsOf = async (definition: InstanceDefinition): Promise<number> => {
      const before = await starts();
      await (await open(definition, signal)).close();
      return (await starts()) - before;
    };
    const definition = instanceDefinition({});
    const found = [await startsOf(definition), await startsOf(definition), await startsOf({ ...definition })];
    assert.equal(found, [2, 1, 2]);
  }));

test('shows the stderr and pid of a program before it has answered', async () => {
  const { signal, ...options } = openOptions();
  const code = "console.error('loading'); console.log('hello'); setInterval(() => {}, 1000)";
  const managed = { endpoint: 'http://127.0.0.1:9/mcp', transport: 'http' } as const;
  for (const fields of [{}, managed]) {
    const open = openingWith({ ...options, launch: (definition) => definition });
    const stop = new AbortController();
    let diagnostics: (() => TransportDiagnostics) | undefined;
    const definition = instanceDefinition({ ...node(code), ...fields });
    const opening = open(definition, stop.signal, {
      onStarted: (started) => {
        diagnostics = started;
      },
    });
    await until(() => (diagnostics?.().stderr.length ?? 0) > 0, 'the first line');
    assert.match(String(diagnostics?.().stderr), 'loading');
    assert.type(diagnostics?.().pid, 'number');
    stop.abort();
    await refusal(opening);
  }
});

test('a failure names proxy variables that the program may lack, without their values', async () => {
  process.env.HTTPS_PROXY = 'http://me:secret@proxy:3128';
  const { signal, ...options } = openOptions();
  const reasonOf = async (code: string, more = {}) => {
    const open = openingWith({ ...options, ...more, launch: (definition) => definition });
    const definition = instanceDefinition(node(code));
    return (await refusal(open(definition, signal))).facts.reason;
  };
  const missing = /; the gateway has HTTPS_PROXY, which the program does not get \(stdio\.pass_env\)$/;
  const offline = "console.error('getaddrinfo ENOTFOUND registry.example'); process.exit(1)";
  assert.match(String(await reasonOf(offline)), missing);
  assert.not.match(String(await reasonOf(offline, { passEnv: ['HTTPS_PROXY'] })), missing);
  delete process.env.HTTPS_PROXY;
});

test.run();
