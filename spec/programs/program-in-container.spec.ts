import { once } from 'node:events';
import type { RequestListener, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { runInContainer } from '../../src/discovery/exec.ts';
import {
  type ContainerProgram,
  exitedWith,
  type ProgramEnd,
  type ProgramOutput,
  type RunInContainer,
} from '../../src/domain/instances/found-instances.ts';
import { settlesWithin, systemClock } from '../../src/domain/time/clock.ts';
import { ProgramRun } from '../../src/programs/program-run.ts';
import { suite } from '../helpers/suite.ts';
import { answerJson, withRawServer } from '../transports/raw-server.ts';

const test = suite('a program in a container');
const PLACE = { engine: 'unix:///engine.sock', id: 'a'.repeat(64) };
const PROGRAM = { command: 'serve', args: ['--fast'], env: {}, container: PLACE };
const ladder = { stdinEndMs: 20, terminateMs: 20 };

/** An engine whose program ends at one of the steps. */
function engine(endsAt: string, startMs = 0) {
  const seen: string[] = [];
  let output: ProgramOutput | undefined;
  const run: RunInContainer = async ({ id }, words, listener) => {
    seen.push(`start ${id.slice(0, 2)} ${words.join(' ')}`);
    output = listener;
    await delay(startMs);
    const exit = Promise.withResolvers<ProgramEnd>();
    const see = (what: string) => {
      seen.push(what);
      if (what === endsAt) exit.resolve(exitedWith(0));
    };
    const program: ContainerProgram = {
      pid: undefined,
      exited: exit.promise,
      write: (text, done) => {
        see(`write ${text}`);
        done();
      },
      endInput: () => see('end'),
      signal: async (name) => see(name),
    };
    return program;
  };
  return { run, seen, output: () => output };
}

for (const [endsAt, steps] of [
  ['end', ['end', 'KILL']],
  ['TERM', ['end', 'TERM', 'KILL']],
  ['KILL', ['end', 'TERM', 'KILL', 'KILL']],
] as const) {
  test(`stop goes down the ladder to ${endsAt}, and then kills what the program left behind`, async () => {
    const { run, seen } = engine(endsAt);
    const child = new ProgramRun(PROGRAM, { runInContainer: run, ladder });
    await new Promise((resolve) => child.write('hi', resolve));
    await Promise.all([child.stop(), child.stop()]);
    assert.equal(seen, ['start aa serve --fast', 'write hi', ...steps]);
    assert.equal(await child.exited, exitedWith(0));
    assert.is(child.pid, null);
  });
}

test('stop soon gives up a program that nothing ends', async () => {
  const child = new ProgramRun(PROGRAM, {
    runInContainer: engine('nothing').run,
    ladder: { ...ladder, terminateMs: 1_000 },
  });
  assert.ok(await settlesWithin(child.stop(), 3_500, systemClock));
  assert.is((await child.exited).reason, 'could not be stopped');
});

test('sends input from before the start in order, and passes on the output', async () => {
  const { run, seen, output } = engine('write b', 10);
  const received: string[] = [];
  const onOutput = (chunk: Buffer) => void received.push(chunk.toString());
  const child = new ProgramRun(PROGRAM, { runInContainer: run, ladder, onOutput });
  const done = await new Promise<string>((resolve) => {
    child.write('a', () => {});
    child.write('b', (error) => resolve(String(error)));
  });
  output()?.onOutput(Buffer.from('line'));
  output()?.onError(Buffer.from('trouble\n'));
  assert.equal([done, received, child.tail.lines], ['undefined', ['line'], ['trouble']]);
  await child.exited;
  assert.equal(seen.slice(1, 3), ['write a', 'write b']);
});

test('stops a program that starts only after `stop` was called', async () => {
  const { run, seen } = engine('TERM', 200);
  const child = new ProgramRun(PROGRAM, {
    runInContainer: run,
    ladder: { stdinEndMs: 1, terminateMs: 1 },
  });
  const stopped = child.stop();
  await child.exited;
  await stopped;
  assert.equal(seen.slice(0, 3), ['start aa serve --fast', 'end', 'TERM']);
});

for (const [silentAt, path] of [
  ['the program is created', /\/containers\/\w+\/exec$/],
  ['the program is started', /\/exec\/one\/start$/],
  ['it is asked about the program', /\/exec\/one\/json$/],
] as const) {
  test(`stop closes the connection to an engine that does not answer when ${silentAt}`, async () => {
    const silence = Promise.withResolvers<ServerResponse>();
    const listener: RequestListener = ({ url = '' }, response) => {
      if (path.test(url)) silence.resolve(response);
      else if (url.endsWith('/start')) response.writeHead(200).flushHeaders();
      else answerJson(response, 201, { Id: 'one' });
    };
    await withRawServer(listener, async ({ url }) => {
      const place = { engine: new URL(url).origin, id: PLACE.id };
      const child = new ProgramRun({ ...PROGRAM, container: place }, { runInContainer, ladder });
      const unanswered = await silence.promise;
      await Promise.all([child.stop(), once(unanswered, 'close')]);
      assert.equal([(await child.exited).reason, child.pid], ['could not be stopped', null]);
    });
  });
}

for (const [silentAt, path] of [
  ['is started', /\/exec\/one\/start$/],
  ['is asked for', /\/exec\/one\/json$/],
] as const) {
  test(`a program is killed after its stop when the engine did not answer while it ${silentAt}`, async () => {
    const killed = Promise.withResolvers<readonly string[]>();
    const listener: RequestListener = async (request, response) => {
      const { url = '' } = request;
      if (path.test(url)) return;
      if (url.endsWith('/start'))
        return void response.writeHead(200)[url.includes('one') ? 'flushHeaders' : 'end']();
      if (!url.endsWith('/exec')) return answerJson(response, 200, { Running: false, ExitCode: 0 });
      const { Cmd: words } = JSON.parse(await text(request));
      if (words.includes('KILL')) killed.resolve(words);
      answerJson(response, 201, { Id: words[0] === 'serve' ? 'one' : 'two' });
    };
    await withRawServer(listener, async ({ url }) => {
      const place = { engine: new URL(url).origin, id: PLACE.id };
      const child = new ProgramRun({ ...PROGRAM, container: place }, { runInContainer, ladder });
      await child.stop();
      assert.match((await killed.promise).at(-1) ?? '', /^STAGEDOOR_PROGRAM=/);
    });
  });
}

test.run();
