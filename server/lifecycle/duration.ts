/** @returns for messages: `500 ms`, `1.5 s`, `30 s`, `a minute`, `10 minutes`, `4 hours` */
export function durationText (ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms >= 7_200_000 && ms % 3_600_000 === 0) return `${ms / 3_600_000} hours`
  if (ms >= 60_000 && ms % 60_000 === 0) return ms === 60_000 ? 'a minute' : `${ms / 60_000} minutes`
  return `${Math.round(ms / 100) / 10} s`
}

/** @returns for messages: `512 MB`, each of 1024 ** 2 bytes */
export function megabytesText (bytes: number): string {
  return `${Math.round(bytes / 1024 ** 2)} MB`
}
