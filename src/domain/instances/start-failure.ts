// The reasons of programs that could not be started. Without imports, since commands read them, too.

/** The beginning of the reason why an instance is not healthy, when its program could not be started. */
export const NOT_STARTED = 'could not be started';

/** True when its program, or its working folder, does not exist: a wait does not help. */
export function isMissing(reason: string | null | undefined): boolean {
  return reason?.startsWith(`${NOT_STARTED}: ENOENT, `) === true;
}
