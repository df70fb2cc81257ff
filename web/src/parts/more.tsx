// The button below a list that is read page by page.

import type { Pages } from './load.ts';

export function More({ more, isBusy }: Pick<Pages<unknown>, 'more' | 'isBusy'>) {
  if (more === undefined) return null;
  return (
    <div class="actions">
      <button type="button" disabled={isBusy} onClick={more}>
        {isBusy ? 'Loading…' : 'Show more'}
      </button>
    </div>
  );
}
