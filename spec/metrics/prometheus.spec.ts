// Scrapes at the same time: the text is made once for equal rights, and for viewers of some templates one after the other.

import * as assert from 'uvu/assert';
import { createGateway } from '../../src/gateway/gateway.ts';
import { Prometheus } from '../../src/metrics/prometheus.ts';
import { suite } from '../helpers/suite.ts';

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

test.run();
