// The logo of the program: a door on a stage.

export function Logo() {
  return (
    <span class="logo">
      <svg viewBox="0 0 32 32" aria-hidden="true" focusable="false">
        <path d="M10 25V8.5A1.5 1.5 0 0 1 11.5 7h9A1.5 1.5 0 0 1 22 8.5V25M6.5 25h19M18.5 16.5v.1" />
      </svg>
      Stagedoor
    </span>
  );
}
