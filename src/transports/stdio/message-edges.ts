// Finds the exchanges of a message that cannot be read by the ids in its readable part, so that the calls fail at once.

/**
 * Ids of the requests that a message answers, from its first and last bytes: when an answer broke off and the next
 * one follows on the same line, the head names another id than the tail. Undefined for a message that is not an
 * answer.
 */
export function idsAtEdges(head: Buffer, tail: Buffer): readonly number[] | undefined {
  const start = head.toString('latin1');
  if (METHOD_AT_HEAD.test(start)) return undefined;
  const match = ID_AT_TAIL.exec(tail.toString('latin1'));
  const ids = [ID_AT_HEAD.exec(start)?.[1], match?.[1] ?? match?.[2]];
  return [...new Set(ids)].filter((digits) => digits !== undefined).map(Number);
}

// Python, Go and Rust servers write the id before the result, TypeScript servers after it. The end of the line is the end of the
// outermost object, and quotes inside a string are escaped, so these are ids of the message itself.
const ID_AT_HEAD = /^\s*\{\s*(?:"jsonrpc"\s*:\s*"[^"]*"\s*,\s*)?"id"\s*:\s*"?(\d+)"?\s*[,}]/;
const ID_AT_TAIL =
  /[,{]\s*(?:"jsonrpc"\s*:\s*"[^"]*"\s*,\s*"id"\s*:\s*"?(\d+)"?|"id"\s*:\s*"?(\d+)"?\s*,\s*"jsonrpc"\s*:\s*"[^"]*")\s*\}\s*$/;
const METHOD_AT_HEAD = /^\s*\{\s*(?:"jsonrpc"\s*:\s*"[^"]*"\s*,\s*)?(?:"id"\s*:\s*[^,{[]*,\s*)?"method"\s*:/;
