module gallery

go 1.21
