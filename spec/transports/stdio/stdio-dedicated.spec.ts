// The programs of single clients: whom those delay that never answer, and what is found out about them once. Real programs.

import * as assert from 'uvu/assert';
import type { Program } from '../../../src/transports/stdio/child-process.ts';
import {
  DedicatedPrograms,
  type DedicatedProgramsOptions,
} from '../../../src/transports/stdio/dedicated-programs.ts';
import { type ProgramChannel, StdioChannel } from '../../../src/transports/stdio/stdio-channel.ts';
import type { OpeningMemory } from '../../../src/transports/transport.ts';
import { until } from '../../conformance/transport.ts';
import { noCapability } from '../../conformance/upstream.ts';
import { codeOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { fixture, LADDER } from './open-stdio.ts';

const test = suite('stdio dedicated', { timeoutMs: 30_000 });

/** Longest time for the start of a few programs on a busy machine; less than a handshake may take. */
const PROMPT_MS = 12_000;
const HANDSHAKE_MS = 20_000;
/** Enough for the programs here to start. */
const PATIENCE_MS = 2_500;

const SILENT = server("if (method === 'server/discover') discovered()");

test('programs of one owner that never answer do not delay those of another', () => {
  const program = server("if (method === 'initialize' && params.clientInfo.name !== 'hangs') initialized()");
  return withOwn(program, { era: 'legacy' }, async ({ own, started }) => {
    const hangs = { ...noCapability, clientInfo: { name: 'hangs' } };
    const patience = new AbortController();
    const { signal } = patience;
    const opening = Array.from({ length: 8 }, () =>
      codeOf(own.open({ ...openingOf('ada'), profile: hangs, signal })),
    );
    const startedAtMs = performance.now();
    const { peer } = await own.open(openingOf('bo'));
    assert.is(peer.era, 'legacy');
    const tookMs = performance.now() - startedAtMs;
    assert.ok(tookMs < PROMPT_MS, `${tookMs} ms`);
    assert.ok(started.length < 9, 'not all of them were started');
    await own.close();
    patience.abort();
    assert.equal(new Set(await Promise.all(opening)), new Set(['BACKEND_UNAVAILABLE']));
  });
});

test('waits once for a modern program that says nothing to initialize', () => {
  const memory: OpeningMemory = {};
  return withOwn(SILENT, { era: 'modern', memory }, async ({ own, started }) => {
    const all = Promise.all(['ada', 'bo', 'cy'].map((ownerId) => own.open(openingOf(ownerId))));
    all.catch(() => undefined); // seen below, unless something else fails before
    await until(() => heardBy(started[0]).length > 0, 'the first one was asked');
    assert.is(started.length, 1, 'the others wait for what comes of it');
    assert.equal(
      (await all).map(({ peer }) => peer.era),
      ['modern', 'modern', 'modern'],
    );
    assert.is(memory.dedicatedEra, 'modern');
    const { channel } = await own.open(openingOf('dee'));
    await until(() => heardBy(channel).length > 0, 'it says what it heard');
    assert.equal(heardBy(channel), ['server/discover']);
    assert.equal(heardBy(started[0]), ['initialize', 'server/discover']);
  });
});

test('knows from earlier how they are spoken to, until that fails', () => {
  const memory: OpeningMemory = { dedicatedEra: 'modern' };
  return withOwn(SILENT, { era: 'modern', memory }, async ({ own, started }) => {
    const { channel, peer } = await own.open(openingOf('ada'));
    assert.is(peer.era, 'modern');
    await until(() => heardBy(channel).length > 0, 'it says what it heard');
    assert.equal(heardBy(started[0]), ['server/discover']);
  }).then(() =>
    withOwn(server('process.exit(3)'), { era: 'modern', memory }, async ({ own }) => {
      assert.is(await codeOf(own.open(openingOf('ada'))), 'BACKEND_UNAVAILABLE');
      assert.is(memory.dedicatedEra, undefined);
    }),
  );
});

test('remembers that one of both eras speaks the legacy one', () => {
  const memory: OpeningMemory = {};
  return withOwn(fixture('--era=dual'), { era: 'modern', memory }, async ({ own }) => {
    assert.is((await own.open(openingOf('ada'))).peer.era, 'legacy');
    assert.is(memory.dedicatedEra, 'legacy');
  });
});

test('takes no program for a silent one that only starts slowly', () => {
  const memory: OpeningMemory = {};
  const settings = { era: 'modern', memory, probeTimeoutMs: 1 } as const;
  return withOwn(fixture('--era=dual'), settings, async ({ own }) => {
    await own.open(openingOf('ada'));
    assert.is(memory.dedicatedEra, undefined);
  }).then(() =>
    withOwn(fixture('--era=dual'), { ...settings, openingMs: PATIENCE_MS }, async ({ own }) => {
      assert.is((await own.open(openingOf('ada'))).peer.era, 'legacy', 'it had the time of the shared one');
    }),
  );
});

test.run();

function openingOf(ownerId: string) {
  return { profile: noCapability, ownerId, signal: new AbortController().signal };
}

/** A program that says on stderr which methods it hears, and does so with each request. */
function server(onRequest: string): Program {
  const code = `
    const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
    require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
      const { id, method, params } = JSON.parse(line);
      const discovered = () => say({ id, result: { supportedVersions: ['2026-07-28'], capabilities: {} } });
      const initialized = () => say({ id, result: { protocolVersion: '2025-11-25', capabilities: {} } });
      if (id === undefined) return;
      console.error(method);
      ${onRequest};
    });`;
  return { command: process.execPath, args: ['-e', code], env: {} };
}

function heardBy(channel: ProgramChannel | undefined): readonly string[] {
  return channel?.facts().stderr ?? [];
}

interface Harness {
  readonly own: DedicatedPrograms;
  readonly started: readonly StdioChannel[];
}

async function withOwn(
  program: Program,
  options: Partial<DedicatedProgramsOptions>,
  body: (harness: Harness) => Promise<void>,
): Promise<void> {
  const started: StdioChannel[] = [];
  const start = () => {
    const channel = new StdioChannel(program, { ladder: LADDER, mayAsk: true });
    started.push(channel);
    return channel;
  };
  const own = new DedicatedPrograms(start, {
    client: { name: 'spec', version: '0' },
    handshakeTimeoutMs: HANDSHAKE_MS,
    era: 'legacy',
    openingMs: 0,
    memory: {},
    probeTimeoutMs: PATIENCE_MS,
    ...options,
  });
  try {
    await body({ own, started });
  } finally {
    await own.close();
    await Promise.all(started.map((channel) => channel.close()));
  }
}
