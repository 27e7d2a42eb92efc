/** The id of an event, a crash group, a rollout or a worker as text. JavaScript can hold it as an exact number. */
export const ID = /^[1-9]\d{0,14}$/
export const MAX_ID = 999_999_999_999_999
