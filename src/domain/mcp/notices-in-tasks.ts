// Notices for one client, each in a task: a server may send more updates than the gateway delivers, and they say only
// that something has changed. So what waits is bounded.

import type { TaskScheduler } from '../time/task-scheduler.ts';
import type { Notification } from './client.ts';
import { enclosingUris } from './resource-uris.ts';

/** The most notices that wait. Beyond, updates name the resources that clients have subscribed to, and not their parts. */
export const MAX_WAITING_NOTICES = 256;

/** A function that delivers each notice in a task. A later notice of the same method and URI replaces one that waits. */
export function noticesInTasks(
  deliver: (notice: Notification) => void,
  subscribed: Pick<ReadonlySet<string>, 'has'>,
  { run }: TaskScheduler,
): (notice: Notification) => void {
  const waiting = new Map<string, Notification>();
  return (given) => {
    const notice = waiting.size < MAX_WAITING_NOTICES ? given : ofSubscribed(given, subscribed);
    if (notice === undefined) return;
    const key = noticeKey(notice);
    const isWaiting = waiting.has(key);
    waiting.set(key, notice);
    if (isWaiting) return;
    run(() => {
      const latest = waiting.get(key) ?? notice;
      waiting.delete(key);
      deliver(latest);
    });
  };
}

/** Equal for notices of which one is enough. */
export function noticeKey({ method, params: { uri } }: Notification): string {
  return typeof uri === 'string' ? `${method} ${uri}` : method; // a server may send any value
}

/**
 * The same notice, of the subscribed resource: of several that have the part, the inner one. Undefined for an update of
 * no subscribed resource.
 */
export function ofSubscribed(
  notice: Notification,
  subscribed: Pick<ReadonlySet<string>, 'has'>,
): Notification | undefined {
  const { uri } = notice.params;
  if (typeof uri !== 'string' || subscribed.has(uri)) return notice;
  const resource = enclosingUris(uri).findLast((each) => subscribed.has(each));
  return resource === undefined ? undefined : { ...notice, params: { ...notice.params, uri: resource } };
}
