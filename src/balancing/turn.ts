// The order of turns among candidates that come and go, for round robin and for ties. It is the cyclic order of ids, so that one
// remembered id is enough, and stays valid when its candidate has left.

/**
 * True when `first` comes sooner than `second` in the cycle of ids that starts after `last`; `last` itself comes at the end. An
 * empty `last` means that no candidate had a turn yet.
 *
 * The turn only moves forward over ids, so it cannot skip a present one: two candidates that are always eligible alternate
 * strictly, whatever the others do. An index into a changing list would favour some and starve others. Source: ADR 7.
 */
export function comesSooner(first: string, second: string, last: string): boolean {
  const firstIsAhead = first > last;
  const secondIsAhead = second > last;
  return firstIsAhead === secondIsAhead ? first < second : firstIsAhead;
}
