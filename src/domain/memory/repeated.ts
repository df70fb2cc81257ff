// What is made of a text that its sender repeats, such as the digest of the credential that a connection sends with each request.

/** Makes a text of another one, and again only when its sender sends another one. Keeps no sender alive. */
export class Repeated {
  readonly #make: (text: string) => string;
  readonly #last = new WeakMap<object, { readonly text: string; readonly made: string }>();

  constructor(make: (text: string) => string) {
    this.#make = make;
  }

  of(sender: object, text: string): string {
    const last = this.#last.get(sender);
    if (last?.text === text) return last.made;
    const made = this.#make(text);
    this.#last.set(sender, { text, made });
    return made;
  }
}
