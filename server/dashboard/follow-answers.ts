/**
 * The live parts of a page whose model comes from other hosts: it is asked for now and then, and shown by a later
 * rendering. `isNewsOf`: a value that changes where what is shown is known to be old
 */
export function followAnswers<Asked extends { now: () => number }, Model extends object> (asked: Asked,
  { model, everyMs, isNewsOf = () => 0 }: { model: (asked: Asked) => Promise<Model>, everyMs: number,
    isNewsOf?: () => number }): () => Model | null
{
  const { now } = asked
  let newest: Model | null = null
  let askedAt = now()
  let seen = isNewsOf()
  let isAsking = false
  return () => {
    if (!isAsking && (now() - askedAt >= everyMs || isNewsOf() !== seen)) {
      isAsking = true
      askedAt = now()
      seen = isNewsOf()
      // The page already shows an error, or the next request will.
      model(asked).catch(() => null).then((found) => {
        newest = found ?? newest
        isAsking = false
      })
    }
    return newest
  }
}
