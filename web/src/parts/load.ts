// Reads a document for a page: what it is, that it loads, or why it failed. It is read again when one of its keys changes,
// and what was read stays visible meanwhile.

import { useCallback, useEffect, useState } from 'preact/hooks';
import { messageOf } from '../api.ts';

export interface Loaded<T> {
  readonly data: T | undefined;
  readonly error: string | undefined;
  readonly reload: () => void;
}

/** `read` is called again when `keys` change; an answer that is overtaken by another is dropped. */
export function useLoaded<T>(read: () => Promise<T>, keys: readonly unknown[]): Loaded<T> {
  const [data, setData] = useState<T | undefined>();
  const [error, setError] = useState<string | undefined>();
  const [round, setRound] = useState(0);
  useEffect(() => {
    let isCurrent = true;
    read().then(
      (value) => {
        if (!isCurrent) return;
        setData(value);
        setError(undefined);
      },
      (thrown: unknown) => {
        if (isCurrent) setError(messageOf(thrown));
      },
    );
    return () => {
      isCurrent = false;
    };
  }, [...keys, round]);
  const reload = useCallback(() => setRound((value) => value + 1), []);
  return { data, error, reload };
}
