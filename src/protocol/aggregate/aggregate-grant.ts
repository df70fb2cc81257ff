// Which templates the owner of a session may use, as far as it is known there, and that their lists are others when that
// changes. Who may use what is decided elsewhere; it comes with the owner's requests.

import { defer, filter, from, map, merge, type Observable, Subject } from 'rxjs';
import { mayUse } from '../../domain/account.ts';
import type { ListField } from '../../domain/mcp.ts';
import { NOTICED_LISTS } from '../../domain/notices.ts';
import type { Owner } from '../ports.ts';
import type { TemplateListChange } from './aggregate-lists.ts';

/** Of one session. */
export class AggregateGrant {
  #owner: Owner;
  readonly #changes = new Subject<ListField>();
  #isOwed = false;

  constructor(owner: Owner) {
    this.#owner = owner;
  }

  /** As he was when he was seen last. */
  get owner(): Owner {
    return this.#owner;
  }

  /** True when he may use other templates than before. */
  take(owner: Owner): boolean {
    const isOther = !hasSameTemplates(owner, this.#owner);
    this.#owner = owner;
    if (!isOther) return false;
    this.#isOwed = !this.#changes.observed;
    for (const list of NOTICED_LISTS) this.#changes.next(list);
    return true;
  }

  /**
   * Of what changes on any template, what he may know of; and all lists when he may use other templates, which is told
   * later when nobody hears it now.
   */
  changesIn(changes$: Observable<TemplateListChange>): Observable<ListField> {
    const theirs$ = changes$.pipe(
      filter(({ template }) => mayUse(this.#owner, template)),
      map(({ list }) => list),
    );
    return defer(() => {
      const owed = this.#isOwed ? NOTICED_LISTS : [];
      this.#isOwed = false;
      return merge(from(owed), this.#changes, theirs$);
    });
  }
}

function hasSameTemplates({ templates: now }: Owner, { templates: before }: Owner): boolean {
  if (now === before || now === undefined || before === undefined) return now === before;
  if (now.size !== before.size) return false;
  for (const template of now) if (!before.has(template)) return false;
  return true;
}
