/** Numbers from 0 to 1 that are the same for the same seed. `seed`: an integer. Returns mulberry32. */
export function createRandom (seed: number): () => number {
  let state = seed | 0
  return () => {
    state = state + 0x6D2B79F5 | 0
    let mixed = Math.imul(state ^ state >>> 15, 1 | state)
    mixed = mixed + Math.imul(mixed ^ mixed >>> 7, 61 | mixed) ^ mixed
    return ((mixed ^ mixed >>> 14) >>> 0) / 2 ** 32
  }
}

/** @returns in another order, the same for the same seed (Fisher and Yates) */
export function shuffled<T> (items: readonly T[], seed: number): T[] {
  const random = createRandom(seed)
  const all = [...items]
  for (let last = all.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1))
    const swapped = all[last]
    all[last] = all[other]
    all[other] = swapped
  }
  return all
}
