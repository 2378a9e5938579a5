package marketplace;

import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.RestControllerAdvice;

/** Answers requests that passed the filters and met no weir in their controller. */
@RestControllerAdvice
class WithoutWeir {
    @ExceptionHandler(Weir.Unavailable.class)
    void unavailable(HttpServletResponse response) throws IOException {
        TierFilter.unavailable(response);
    }
}
