// An exchange that may outlive the HTTP request it came with counts the memory of that request's body until it ends.

import { defer, finalize, type Observable } from 'rxjs';
import type { McpRequest } from './endpoint-types.ts';

/** The same exchange; while it is subscribed to, the body counts as held. */
export function withBody<T>(
  answers$: Observable<T>,
  { keepBody }: Pick<McpRequest, 'keepBody'>,
): Observable<T> {
  if (keepBody === undefined) return answers$;
  return defer(() => answers$.pipe(finalize(keepBody())));
}
