// Scrapes at the same time: the text is made once for equal rights, and for viewers of some templates one after the other.

import * as assert from 'uvu/assert';
import { createGateway } from '../../src/gateway/gateway.ts';
import { Prometheus } from '../../src/metrics/prometheus.ts';
import { suite } from '../helpers/suite.ts';
import { turnsOf } from '../helpers/turns.ts';

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

test.run();
