/** What a group of crashes is known by, on whatever host: the version of the rule that makes it, and a digest. */
export const FINGERPRINT = /^v\d{1,3}:[\da-f]{32}$/
