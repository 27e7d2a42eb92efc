/** What comes soon is seen soon; what takes long costs few looks meanwhile. */
const LOOK_AGAIN_MS = 20
const LOOK_AGAIN_AT_MOST_MS = 150
export const PATIENCE_MS = 90_000

/**
 * Looks until it is so: a process that is no child of ours tells nobody of its end. `what`: a function is asked once
 * the patience is at its end; `everyMs`: where it is measured how long it takes.
 */
export async function until (isSo: () => boolean | Promise<boolean>, what: string | (() => string),
  { patienceMs = PATIENCE_MS, everyMs }: { patienceMs?: number, everyMs?: number } = {})
{
  const deadline = performance.now() + patienceMs
  for (let ms = everyMs ?? LOOK_AGAIN_MS; !await isSo(); ms = everyMs ?? Math.min(ms * 1.2, LOOK_AGAIN_AT_MOST_MS)) {
    if (performance.now() > deadline)
      throw new Error(`waited ${patienceMs} ms for ${typeof what === 'function' ? what() : what}`)
    await new Promise((resolve) => setTimeout(resolve, ms))
  }
}

/** Looks until there is something. Returns what it has seen. */
export async function untilFound<T> (look: () => T | null | undefined | false | Promise<T | null | undefined | false>,
  what: string | (() => string), options?: Parameters<typeof until>[2]): Promise<T>
{
  let seen: T | null | undefined | false
  await until(async () => Boolean(seen = await look()), what, options)
  return seen as T
}

/** @throws {Error} which says for what it has waited too long */
export async function inPatience<T> (promise: Promise<T>, what: () => string): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`waited ${PATIENCE_MS} ms for ${what()}`)), PATIENCE_MS)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
