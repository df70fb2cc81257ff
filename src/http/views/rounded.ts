// Numbers as people read them: a measurement has no seventeen digits.

/** Rounds to a number of digits behind the point. */
export function rounded(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}
