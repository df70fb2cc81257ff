// Who hears of errors of our own that no answer tells. They are told in the middle of answers, which must not depend on
// who listens.

/** Hears of an error. */
export type FaultListener = (error: unknown) => void;

/** The same listener, of which nothing is thrown any more. Without one nobody hears. */
export function guarded(listener: FaultListener = () => {}): FaultListener {
  return (error) => {
    try {
      listener(error);
    } catch {
      // Who was to hear of what went wrong goes wrong itself: nobody is left to be told.
    }
  };
}
