// Measures the heap of a Node process, and what it does, that was started with `--inspect`, through its inspector.

const inspected = /ws:\/\/127\.0\.0\.1:\d+\/[\w-]+/;

/** Connects to the inspector whose address is in the output of the process. */
export async function openInspector(output: string) {
  const address = inspected.exec(output)?.[0];
  if (address === undefined) throw new Error('the process has no inspector');
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
    /** The live heap, after a collection. */
    async heapBytes(): Promise<number> {
      await ask('HeapProfiler.collectGarbage');
      const { usedSize } = (await ask('Runtime.getHeapUsage')) as { usedSize: number };
      return usedSize;
    },
    startProfile: async (): Promise<void> => {
      await ask('Profiler.enable');
      await ask('Profiler.start');
    },
    /** What a `.cpuprofile` file contains. */
    async endProfile(): Promise<unknown> {
      const { profile } = (await ask('Profiler.stop')) as { profile: unknown };
      return profile;
    },
    close: () => socket.close(),
  };
}
