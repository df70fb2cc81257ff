// Whose turn it is, among candidates that come and go: the one memory that round robin and tie-breaking need.
// The order is the cyclic order of ids, so one remembered id is enough and stays true when its owner has left.

/**
 * True when `first` comes sooner than `second` in the circle of ids that starts right after `last`; `last` itself
 * comes at the end. An empty `last` means that no candidate had a turn yet.
 *
 * Because the turn only moves forward over ids, it cannot pass an id that is there: two candidates that are always
 * eligible take strict turns, whatever the others do. An index into a changing list, or starting over when the last
 * one has left, would favour some and starve others. Source: ADR 7.
 */
export function comesSooner(first: string, second: string, last: string): boolean {
  const firstIsAhead = first > last;
  const secondIsAhead = second > last;
  return firstIsAhead === secondIsAhead ? first < second : firstIsAhead;
}
