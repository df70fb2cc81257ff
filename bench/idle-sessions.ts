// Measures the cost of an idle session of a legacy client: the heap of a gateway before and after 5,000
// sessions were opened, both times after a garbage collection through the inspector.

import { fileURLToPath } from 'node:url';
import { startGateway } from './gateway.ts';
import { initializeBody, openSession } from './open-session.ts';

export interface IdleSessions {
  readonly sessions: number;
  readonly bytesPerSession: number;
}

const sessionCount = 5_000;
const atOnce = 16;
const inspected = /ws:\/\/127\.0\.0\.1:\d+\/[\w-]+/;

/** Opens the sessions on one shared process. */
export async function measureIdleSessions(): Promise<IdleSessions> {
  const pipe = fileURLToPath(new URL('backends/stdio.ts', import.meta.url));
  const gateway = await startGateway(
    { http: {}, stdio: { pipe: [pipe] } },
    { GATEWAY_AUTH_ENABLED: 'false', NODE_OPTIONS: '--inspect=127.0.0.1:0' },
  );
  try {
    const address = inspected.exec(gateway.output())?.[0];
    if (address === undefined) throw new Error('the gateway has no inspector');
    const inspector = await openInspector(address);
    const url = `${gateway.origin}/mcp/pipe`;
    for (let warmUp = 0; warmUp < 100; warmUp += 1) await openSession(url, initializeBody);
    const before = await inspector.heapBytes();
    await Promise.all(Array.from({ length: atOnce }, () => openMany(url, sessionCount / atOnce)));
    const after = await inspector.heapBytes();
    inspector.close();
    const opened = atOnce * Math.floor(sessionCount / atOnce);
    return { sessions: opened, bytesPerSession: (after - before) / opened };
  } finally {
    await gateway.stop();
  }
}

async function openMany(url: string, count: number): Promise<void> {
  for (let opened = 0; opened < count; opened += 1) await openSession(url, initializeBody);
}

async function openInspector(address: string) {
  const socket = new WebSocket(address);
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve, { once: true });
    socket.addEventListener('error', reject, { once: true });
  });
  let lastId = 0;
  const ask = (method: string, params: object = {}): Promise<unknown> => {
    lastId += 1;
    const id = lastId;
    socket.send(JSON.stringify({ id, method, params }));
    return new Promise((resolve) => {
      const onMessage = ({ data }: MessageEvent): void => {
        const message = JSON.parse(String(data));
        if (message.id !== id) return;
        socket.removeEventListener('message', onMessage);
        resolve(message.result);
      };
      socket.addEventListener('message', onMessage);
    });
  };
  return {
    async heapBytes(): Promise<number> {
      await ask('HeapProfiler.collectGarbage');
      const { usedSize } = (await ask('Runtime.getHeapUsage')) as { usedSize: number };
      return usedSize;
    },
    close: () => socket.close(),
  };
}
