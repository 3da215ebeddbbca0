module goagent

go 1.19
