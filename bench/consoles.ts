// Open consoles: each reads the events and the samples that a console shows on its overview.

const CONSOLES = 50;
const EVENTS_PATH = '/events?follow=true&type=gateway.sampled,instance,session,template';

/** Resolves when all consoles are open; the returned function closes them. */
export async function openConsoles(
  origin: string,
  headers: Readonly<Record<string, string>>,
): Promise<() => void> {
  const readers = new AbortController();
  const close = (): void => readers.abort();
  try {
    await Promise.all(Array.from({ length: CONSOLES }, () => read(origin, headers, readers.signal)));
    return close;
  } catch (error) {
    close();
    throw error;
  }
}

/** Resolves when the stream is open; reads it until the signal aborts. */
async function read(
  origin: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<void> {
  const { ok, status, body } = await fetch(`${origin}${EVENTS_PATH}`, { headers, signal });
  if (!ok || body === null) throw new Error(`${EVENTS_PATH} answered ${status}`);
  const drain = async (): Promise<void> => {
    for await (const _ of body);
  };
  drain().catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}
