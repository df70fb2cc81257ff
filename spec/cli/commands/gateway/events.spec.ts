// @own-process: a command that fails before it listens keeps its signal listener until the process ends.

import type { ServerResponse } from 'node:http';
import * as assert from 'uvu/assert';
import { serving } from '../../../helpers/backends/function-backend.ts';
import { fetchFor } from '../../../helpers/network/replaced-fetch.ts';
import { suite } from '../../../helpers/suite.ts';
import { complaint, gatewayFor, HANDLER, printed, runCommand, serverFor } from '../against-gateway.ts';

const test = suite('gateway events');
const gateway = gatewayFor(test, { withAccounts: true }, async ({ server: { gateway: facade } }) => {
  for (const template of ['demo', 'other']) {
    await facade.register(template, { id: 'one', handler: HANDLER }, { waitMs: 5_000 });
  }
});

const serve = serverFor(test);
const replaceFetch = fetchFor(test);

test('shows one line for each past event', async () => {
  const out = await printed(gateway.run('gateway events'));
  assert.match(out, /^\d\d:\d\d:\d\d instance\.registered {2}demo\/one {2}replaced=false$/m);
  assert.match(out, /^\d\d:\d\d:\d\d instance\.healthy {2}other\/one {2}era=legacy$/m);
});

test('filters events by template and type', async () => {
  const { out } = await gateway.run('gateway events --template demo --type instance.healthy');
  assert.match(out, /^[^\n]+ instance\.healthy {2}demo\/one {2}era=legacy$/);
  const lines = (await gateway.run('events --json --type instance')).out.split('\n');
  for (const { type, at } of lines.map((line) => JSON.parse(line)))
    assert.equal([type.startsWith('instance.'), new Date(at).toISOString()], [true, at]);
  assert.match(await complaint(gateway.run('gateway events --type nothing')), /\(VALIDATION_ERROR\)$/);
});

test('shows the tool, caller, outcome and duration of a call', async () => {
  const { gateway: facade } = gateway.server;
  await facade.register('calls', { id: 'one', handler: serving({ echo: () => ({}) }) }, { waitMs: 5_000 });
  await facade.call('calls', 'echo', {}, { callerId: 'user:1', requestId: 'r-1' });
  const { out } = await gateway.run('gateway events --type attempt.finished,call.finished');
  assert.match(
    out,
    /^[^\n]+ call\.finished {2}calls\/one {2}call=\d+ {2}method=tools\/call {2}tool=echo {2}principal=user:1 {2}request_id=r-1 {2}attempt=1 {2}wait_ms=\S+ {2}outcome=result {2}duration_ms=[\d.]+$/m,
  );
});

test('follows events and the samples of the load until a signal', async () => {
  const [drained, sampled] = [Promise.withResolvers<void>(), Promise.withResolvers<string>()];
  const onPrint = (text: string) => {
    if (text.includes('instance.draining')) drained.resolve();
    else if (text.includes('other/one')) gateway.server.gateway.drain('demo', 'one');
    else if (text.includes('gateway.sampled')) sampled.resolve(text);
  };
  const ended = printed(gateway.runAt({ onPrint }, 'gateway events -f --type instance,gateway.sampled'));
  await drained.promise;
  const totals = / {2}requests=\d+ {2}failures=\d+ {2}in_flight=0 {2}queued=0 {2}sessions=0 {2}p50_ms=/;
  assert.match(await sampled.promise, totals);
  process.emit('SIGINT', 'SIGINT');
  await ended;
});

test('resumes after the last event when the connection breaks', async () => {
  const asked: unknown[] = [];
  const event = (id: number) => `id: run-${id}\nevent: template.changed\ndata: {"type":"t${id}"}\n\n`;
  const scenes: ((response: ServerResponse) => void)[] = [
    (response) => response.write(event(1), () => response.destroy()),
    (response) => response.end(event(2)),
  ];
  const url = await serve((request, response) => {
    asked.push(request.headers['last-event-id']);
    response.setHeader('content-type', 'text/event-stream');
    scenes.shift()?.(response);
  });
  const { code, out, err } = await runCommand(['gateway', 'events', '-f', '--url', url]);
  assert.equal([code, asked], [0, [undefined, 'run-1']]);
  assert.match(out, /^ +t1\n +t2$/);
  assert.match(err, /^lost the connection to [^\n]+; reconnecting\n[^\n]+ has ended the stream$/);
});

test('ends at an event that is not JSON', async () => {
  const url = await serve((_, response) =>
    response.setHeader('content-type', 'text/event-stream').write('data: nothing\n\n'),
  );
  for (const more of ['', ' --json', ' --follow'])
    assert.is(
      await complaint(runCommand([...`gateway events${more}`.split(' '), '--url', url])),
      `stagedoor: ${url} sent an event that is not JSON`,
    );
});

test('waits for a gateway that does not answer after its connection broke', async () => {
  const stream = { headers: { 'content-type': 'text/event-stream' } };
  const broken = new ReadableStream({ pull: (controller) => controller.error(new Error('reset')) });
  const cause = Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
  const scenes: (() => Promise<Response>)[] = [
    async () => new Response(broken, stream),
    () => Promise.reject(new TypeError('fetch failed', { cause })),
    async () => new Response('data: {"type":"back"}\n\n', stream),
  ];
  replaceFetch(() => scenes.shift()?.() ?? Promise.reject(new Error('no further request')));
  const { code, out, err } = await runCommand(['gateway', 'events', '-f', '--url', 'http://127.0.0.1:9']);
  assert.is(code, 0, err);
  assert.match(out, 'back');
});

test.run();
