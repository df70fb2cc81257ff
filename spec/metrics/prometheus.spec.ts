// Scrapes at the same time: the text is made once for equal rights, and for viewers of some templates one after the other.

import * as assert from 'uvu/assert';
import { createGateway } from '../../src/gateway/gateway.ts';
import { Prometheus } from '../../src/metrics/prometheus.ts';
import { suite } from '../helpers/suite.ts';
import { TurnCounter, turnsOf } from '../helpers/time/turns.ts';

const test = suite('scrapes of metrics');

test('that viewers of the same templates begin together share one text, and those of others wait', async () => {
  const gateway = await createGateway();
  const snapshot = gateway.snapshot.bind(gateway);
  let made = 0;
  gateway.snapshot = () => {
    made += 1;
    return snapshot();
  };
  const metrics = new Prometheus(gateway);
  const texts = Array.from({ length: 9 }, (_, index) =>
    metrics.text({ templates: new Set([`t${index % 3}`]) }),
  );
  await texts[0];
  assert.ok(made <= 2, `${made} texts were begun before the first one ended`);
  await Promise.all([...texts, metrics.text(), metrics.text()]);
  assert.is(made, 4);
  await metrics.text({ templates: new Set(['t0']) });
  assert.is(made, 5);
  await gateway.close();
});

test('the lines of thousands of templates are made in several turns, below one heading for each metric', async () => {
  const scrape = async (count: number) => {
    const definitions = Array.from({ length: count }, (_, at) => ({ id: `t${at}` }));
    const gateway = await createGateway({ definitions });
    const metrics = new Prometheus(gateway);
    await metrics.text(); // loads the package
    let text = '';
    const turns = await turnsOf(async () => {
      text = await metrics.text();
    });
    await gateway.close();
    const headings = text.split('\n').filter((line) => line.startsWith('#'));
    return { turns, headings, lines: text.split('\n').length };
  };
  const [few, many] = [await scrape(1), await scrape(2_000)];
  assert.equal(many.headings, few.headings);
  assert.ok(many.lines > few.lines + 15_000, `${many.lines} lines`);
  assert.ok(many.turns > few.turns + 10, `${many.turns} turns`);
});

test('many instances are read once, in several turns, and so are their numbers', async () => {
  const gateway = await createGateway();
  const handler = async () => ({});
  const ids = Array.from({ length: 1_500 }, (_, at) => `i${at}`);
  await Promise.all(ids.map((id) => gateway.register('t', { id, handler }, { waitMs: 0 })));
  const metrics = new Prometheus(gateway);
  await metrics.text(); // loads the package
  const { traffic } = gateway.internals;
  const [instance, eachServer] = [traffic.instance.bind(traffic), gateway.eachServer.bind(gateway)];
  const [numbers, read] = [new TurnCounter(), new TurnCounter()];
  traffic.instance = (id) => {
    const counts = instance(id);
    const restarts = () => {
      numbers.note();
      return counts?.restarts;
    };
    return counts && Object.defineProperty({ ...counts }, 'restarts', { get: restarts });
  };
  gateway.eachServer = function* (templates) {
    for (const server of eachServer(templates)) {
      read.note();
      yield server;
    }
  };
  const text = await metrics.text();
  assert.is(text.split('\n').filter((line) => line.startsWith('stagedoor_instance_up{')).length, 1_500);
  assert.is(read.all, 1_500);
  assert.ok(read.fullest < 1_500, `${read.fullest} in one turn`);
  assert.is(numbers.all, 1_500);
  assert.ok(numbers.fullest < 1_500, `the numbers of ${numbers.fullest} in one turn`);
  await gateway.close({ graceMs: 0 });
});

test('each histogram of a scrape is of one moment, though its lines are made in two turns', async () => {
  const definitions = Array.from({ length: 120 }, (_, at) => ({ id: `t${at}` }));
  const gateway = await createGateway({ definitions });
  const metrics = new Prometheus(gateway);
  await metrics.text(); // loads the package
  const { traffic } = gateway.internals;
  // Counts begin with the first request.
  await Promise.allSettled(definitions.map(({ id }) => gateway.call(id, 'x')));
  let isDone = false;
  const observe = () => {
    for (const { id } of definitions) traffic.template(id)?.waits.observe(1);
    if (!isDone) setImmediate(observe);
  };
  observe();
  const text = await metrics.text();
  isDone = true;
  const numbersOf = (end: string) =>
    [...text.matchAll(new RegExp(`^stagedoor_queue_wait_seconds_${end} (\\d+)$`, 'gm'))].map(
      ([, number]) => number,
    );
  const counts = numbersOf('count\\{template="t\\d+"\\}');
  assert.is(counts.length, 120);
  assert.equal(numbersOf('bucket\\{.*le="60".*\\}'), counts);
  assert.equal(numbersOf('bucket\\{.*le="\\+Inf".*\\}'), counts);
  await gateway.close();
});

test.run();
