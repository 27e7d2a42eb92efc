/**
 * The name of an app as one part of a key, of a subject and of the name of a folder. A deck in the foreground may be
 * called anything, such as `@acme/shop`.
 * @returns letters, digits, `_`, `-`, and `=` with the hex digits of any other byte
 */
export function appKey (app: string): string {
  return app.replace(/[^\w-]/gu,
    (character) => Array.from(Buffer.from(character), (byte) => `=${byte.toString(16).padStart(2, '0')}`).join(''))
}
