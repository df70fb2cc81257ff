// Loads a library in several turns of the event loop, because Node evaluates all that an import needs in one turn.
// Source: ADR 276.

/**
 * Loads `parts` one after the other: modules that need about equal times, each with imports that else only the later ones have.
 */
export async function loadInTurns(
  parts: readonly string[],
  turn: () => Promise<void> | undefined,
): Promise<void> {
  for (const part of parts) {
    // Whatever cannot be loaded alone is loaded with the rest.
    await import(part).catch(() => undefined);
    await turn();
  }
}
