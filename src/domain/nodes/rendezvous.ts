// Rendezvous hashing: each key has an order of all candidates of its own, and a candidate that comes or goes moves
// only the keys that it is first for.

/** FNV-1a of 32 bits, mixed. */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1)
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return mixed(hash);
}

/** The finalizer of MurmurHash3: each bit of the input changes half of those of the output. */
export function mixed(bits: number): number {
  const first = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  const second = Math.imul(first ^ (first >>> 13), 0xc2b2ae35);
  return (second ^ (second >>> 16)) >>> 0;
}

/** The ids in the order of this key. */
export function rendezvousOrder(key: string, ids: readonly string[]): string[] {
  const hash = hashOf(key);
  const ranked = ids.map((id) => ({ id, rank: mixed(hashOf(id) ^ hash) }));
  ranked.sort((a, b) => b.rank - a.rank || (a.id < b.id ? -1 : 1));
  return ranked.map(({ id }) => id);
}
