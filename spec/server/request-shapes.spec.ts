// A collection after the first requests does not make all later ones allocate more. @own-process: it measures the heap, and V8 settles the
// shape of a class once per process.

import { once } from 'node:events';
import { Agent, get, type RequestListener } from 'node:http';
import { Session } from 'node:inspector/promises';
import * as assert from 'uvu/assert';
import { openListeners } from '../../src/server/sockets/listeners.ts';
import { collectGarbage } from '../helpers/garbage.ts';
import { suite } from '../helpers/suite.ts';

const REQUESTS = 500;

const test = suite('shapes of requests', { timeoutMs: 60_000 });

test('a collection after the sixth request does not make later requests larger', async () => {
  const wanted = { host: '127.0.0.1', port: 0, label: 'gateway' } as const;
  const serve: RequestListener = (_, response) => response.end();
  const listeners = await openListeners({ listeners: [wanted], portsDefaulted: false }, { serve });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const ask = async (count: number): Promise<void> => {
    for (let left = count; left > 0; left -= 1) {
      const [response] = await once(get(String(listeners.urls[0]), { agent }), 'response');
      await once(response.resume(), 'end');
    }
  };
  await ask(6);
  collectGarbage();
  await ask(REQUESTS);
  const session = new Session();
  session.connect();
  await session.post('HeapProfiler.startSampling', {
    samplingInterval: 1_024,
    includeObjectsCollectedByMajorGC: true,
    includeObjectsCollectedByMinorGC: true,
  });
  await ask(REQUESTS);
  const { profile } = await session.post('HeapProfiler.stopSampling');
  session.disconnect();
  agent.destroy();
  await listeners.close(0);
  const bytes = allocatedBy('ServerResponse', profile.head) / REQUESTS;
  assert.ok(bytes < 2_000, `${bytes} bytes for each response`); // else more than 3,000
});

test.run();

interface Node {
  readonly callFrame: { readonly functionName: string };
  readonly selfSize: number;
  readonly children: readonly Node[];
}

function allocatedBy(name: string, { callFrame, selfSize, children }: Node): number {
  const own = callFrame.functionName === name ? selfSize : 0;
  return children.reduce((sum, child) => sum + allocatedBy(name, child), own);
}
