// `If-Match` of a change, as clients write it: `*`, or tags in quotes. Source: RFC 9110 section 13.1.1.

import { changedMeanwhile } from '../domain/errors/registry-errors.ts';

/** Throws PRECONDITION_FAILED unless the item, whose present tag is `etag`, exists and `ifMatch` names it. */
export function refuseOtherVersion(
  [what, id]: Parameters<typeof changedMeanwhile>,
  ifMatch: string | undefined,
  etag: string | undefined,
): void {
  const tags = ifMatch?.split(',').map((tag) => tag.trim().replace(/^W\//, '').replaceAll('"', ''));
  if (tags === undefined) return;
  if (etag === undefined || !tags.some((tag) => tag === '*' || tag === etag))
    throw changedMeanwhile(what, id);
}
